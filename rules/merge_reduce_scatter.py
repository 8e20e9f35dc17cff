"""merge_reduce_scatter: partial values that are wanted cut are reduce-scattered."""

from collections.abc import Iterable

from rooflang.ir.tensor import Tensor
from rooflang.rules.laws import REDUCE_SCATTER, merge_rule
from rooflang.rules.record import Exactness
from rooflang.rules.theory import Theory

_HIDDEN = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")


def facts(theory: Theory) -> Iterable[str]:
    """`(Spread tensor label)`: its partial values may be combined shard by shard along the label."""
    for name, labels in theory.spread.items():
        tensor = theory.producer[name].output
        if theory.movable(tensor):
            yield from (f"(Spread {theory.term(tensor)} {theory.codes[label]})" for label in labels)


RULE = merge_rule(
    "merge_reduce_scatter",
    REDUCE_SCATTER,
    summary="a partial value, wanted cut along dim d, is reduce-scattered",
    before="scatter[d,a](reduce[a] x)",
    after="reduce_scatter[d,a] x",
    why="the producer's combine works element by element, or row by row, so that it commutes with taking a shard of d",
    preconditions=(
        "the value is partial on axis a, not cut along it",
        "d is a dim of the value; states other than summands (log-sum-exp, top-k) keep their rows whole",
    ),
    exactness=Exactness.REASSOCIATING,
    good=(_HIDDEN, ("P",), ("batch",)),
    bad=(_HIDDEN, ("hidden",), ("batch",)),
    facts=facts,
)
