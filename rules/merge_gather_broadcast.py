"""merge_gather_broadcast: shards that every coordinate needs whole are all-gathered.

A weight that is broadcast to its readers is one of these values: it may rest cut, w = gather[d,a](scatter[d,a] w), and
broadcast[a](gather[d,a] w) is an all-gather in front of the kernel (what training calls ZeRO-3 or FSDP).
"""

from collections.abc import Iterable

from rooflang.ir.tensor import Role, Tensor
from rooflang.rules.laws import ALL_GATHER, merge_rule
from rooflang.rules.record import Exactness
from rooflang.rules.theory import Theory

_HIDDEN = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")
_CACHE = Tensor(name="kv", dims=("batch", "context", "width"), dtype="fp8", role=Role.KV_CACHE)


def facts(theory: Theory) -> Iterable[str]:
    """`(Kept weight label)`, where weights may be gathered: it may rest cut along the label."""
    for leaf in theory.weights if theory.gathered else ():
        yield from (f"(Kept {theory.term(leaf)} {theory.codes[label]})" for label in theory.cuttable[leaf.name])


RULE = merge_rule(
    "merge_gather_broadcast",
    ALL_GATHER,
    summary="a value cut along a dim, wanted whole by every coordinate, is all-gathered",
    before="broadcast[a](gather[d,a] x)",
    after="all_gather[d,a] x",
    why="both put the shards of d side by side, in the order of their coordinates, on every coordinate of a",
    preconditions=("the value is cut along d on axis a",),
    exactness=Exactness.EXACT,
    good=(_HIDDEN, ("hidden",), ("R",)),
    bad=(_CACHE, ("context",), ("R",)),
    facts=facts,
    weights=True,
)
