"""merge_reduce_broadcast: partial values that every coordinate needs whole are all-reduced."""

from rooflang.ir.tensor import Tensor
from rooflang.rules.laws import ALL_REDUCE, merge_rule
from rooflang.rules.record import Exactness

_HIDDEN = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")

RULE = merge_rule(
    "merge_reduce_broadcast",
    ALL_REDUCE,
    summary="a partial value, wanted whole by every coordinate, is all-reduced",
    before="broadcast[a](reduce[a] x)",
    after="all_reduce[a] x",
    why="both combine the same pieces, by the producer's associative and commutative combine, on every coordinate of a",
    preconditions=("the value is partial on axis a, not cut along it",),
    exactness=Exactness.REASSOCIATING,
    good=(_HIDDEN, ("P",), ("R",)),
    bad=(_HIDDEN, ("hidden",), ("R",)),
)
