"""Rows of dims signatures that many kinds share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.op import Op, Sizes
from rooflang.ir.tensor import Num

#: Labels of the tokens that a request runs beside each other: positions of a prompt, or what a decode step with drafts
#: checks.
POSITIONS = ("seq", "draft")


def positions(dims: Sequence[str], local: Sizes) -> Num:
    """How many tokens of each request a tensor of these dims has on a rank."""
    return math.prod(local[d] for d in POSITIONS if d in dims)


def no_traffic(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """A view reads nothing: it is another name for the same memory, from which its readers take it."""
    return 0.0


def par(op: Op, label: str, *, skip: Iterable[int] = ()) -> Cut:
    """Cut along a label of the output: operands that have it are cut too, the others are whole on every rank."""
    dropped = set(skip)
    operands = tuple(label if label in t.dims and i not in dropped else REPLICATED for i, t in enumerate(op.operands))
    return Cut(kind=CutKind.PAR, dim=label, operands=operands, out=label, loops=(label,))


def pars(op: Op, labels: Sequence[str]) -> list[Cut]:
    """`par` for each of the labels that the output has."""
    return [par(op, label) for label in labels if label in op.output.dims]


def contracted(op: Op, label: str) -> Cut:
    """Cut along a label that the operator sums over: every rank has a partial output."""
    operands = tuple(label if label in t.dims else REPLICATED for t in op.operands)
    return Cut(kind=CutKind.SUM, dim=label, operands=operands, out=PARTIAL, loops=(label,))


def linear(op: Op, partial: Sequence[int]) -> Cut:
    """Partial values pass through: f(Σ x) = Σ f(x) for the operands of these indices, the others being whole."""
    operands = tuple(PARTIAL if i in partial else REPLICATED for i in range(len(op.operands)))
    return Cut(kind=CutKind.LINEAR, dim="partial", operands=operands, out=PARTIAL)


def expect(op: Op, count: int) -> None:
    """Raise `GraphError` unless the operator has that many operands."""
    if len(op.operands) != count:
        raise GraphError(f"{op.name}: {op.kind} takes {count} operands, not {len(op.operands)}")


def expect_rank(op: Op, index: int, *words: str) -> None:
    """Raise `GraphError` unless operand `index` has as many dims as there are words for them."""
    if len(op.operands[index].dims) != len(words):
        raise GraphError(
            f"{op.name}: {op.operands[index].name} has the dims {' '.join(op.operands[index].dims) or '(none)'}",
            expected=f"{len(words)} dims: {', '.join(words)}",
        )


def expect_labels(op: Op, found: Sequence[str], wanted: Sequence[str], what: str) -> None:
    """Raise `GraphError` unless two label sequences are the same but for their order."""
    if sorted(found) != sorted(wanted):
        raise GraphError(
            f"{op.name}: {what} has the dims {' '.join(found) or '(none)'}",
            expected=" ".join(wanted) or "(none)",
        )
