"""merge_gather_scatter: a value cut along one dim and wanted cut along another changes by an all-to-all."""

from rooflang.ir.tensor import Tensor
from rooflang.rules.laws import ALL_TO_ALL, merge_rule
from rooflang.rules.record import Exactness

_HIDDEN = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")

RULE = merge_rule(
    "merge_gather_scatter",
    ALL_TO_ALL,
    summary="a value cut along dim d, wanted cut along dim e, changes by an all-to-all; for d = e nothing is to do",
    before="scatter[e,a](gather[d,a] x)",
    after="all_to_all[d→e,a] x",
    why="coordinate i needs, of every shard of d, the i-th part of e: pieces to be concatenated along d",
    preconditions=(
        "the value is cut along d on axis a",
        "d ≠ e (an all-to-all with equal dims would permute the value)",
        "both are dims of the value",
    ),
    exactness=Exactness.EXACT,
    good=(_HIDDEN, ("batch",), ("hidden",)),
    bad=(_HIDDEN, ("batch",), ("batch",)),
)
