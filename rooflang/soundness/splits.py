"""split_kernel on trial: an operator that is cut, and moved on after that, computes what the whole operator does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, STATES, CutKind, show_spec
from rooflang.ir.digits import Digits
from rooflang.ir.exact import alike
from rooflang.ir.graph import Graph
from rooflang.ir.layout import Choice, Mode, collective_of, make_mode, make_transfer
from rooflang.ir.lifted import apply_transfer, assemble, run_mode
from rooflang.ir.op import Op, op_kind, signature
from rooflang.ir.reference import Reference, base, reference
from rooflang.ir.reference.base import Array
from rooflang.ir.values import Value
from rooflang.rules.record import Ok, Verdict
from rooflang.rules.split_kernel import check
from rooflang.soundness import draw
from rooflang.soundness.cases import case_names, example, the_op
from rooflang.soundness.source import Source

Choices = Callable[[Op], Sequence[Choice]]

#: Transfers that are tried after an operator.
_STEPS = 2


def allowed(op: Op, rule: Callable[..., Verdict] = check) -> list[Choice]:
    """Every cut that split_kernel takes, partial operands being summands."""
    summands = {tensor.name: frozenset({"sum"}) for tensor in op.operands}
    dims = dict.fromkeys([*op.labels, *(cut.dim for cut in signature(op))])
    verdicts = [rule(op, dim, partials=summands) for dim in dims]
    return [verdict.result for verdict in verdicts if isinstance(verdict, Ok)]


def uncut(op: Op) -> list[Choice]:
    """What an operator may do along an axis that does not cut it."""
    return [REPLICATED, OWNER] if op_kind(op.kind).pure else []


@dataclass(frozen=True, kw_only=True)
class Splits:
    """A claim: operators of these cases, cut in one of the `choices`, are right.

    A second axis cuts them too, or runs them whole, in any way that is right by itself. Ranks compute with the
    reference that `broken` makes of the true one; with `loose`, shards are neither aligned nor grouped.
    """

    cases: Sequence[str | Graph] = ()
    choices: Choices = allowed
    broken: Callable[[Reference], Reference] | None = None
    loose: bool = False

    def __call__(self, source: Source) -> str | None:
        graph = draw.extents(example(source.choice(self.cases or splittable())), source)
        op = the_op(graph)
        sizes = (source.ranks(),) if source.below(2) == 0 else (source.ranks(3), source.integer(1, 3))
        first = list(self.choices(op))
        second = [*uncut(op), *allowed(op), *first]
        chosen = [source.choice(first), *(source.choice(second) for _ in sizes[1:])]
        if len(chosen) == 2 and source.below(2):
            chosen.reverse()
        arrays = draw.leaves(graph, source, exact=not source.chance(8))
        on = draw.digits(graph, sizes, source, loose=self.loose)
        mode = make_mode(op, chosen)
        operands = [
            draw.laid(t, arrays[t.name], s, on, source) for t, s in zip(op.operands, mode.operands, strict=True)
        ]
        wanted = draw.whole(graph, arrays)
        with replaced(op, self.broken):
            value = run_mode(mode, operands, on)
            for found, after in walked(value, on, source):
                if not alike(found, wanted):
                    return told(graph, mode, on, after, arrays, wanted, found)
        return None


def splittable() -> tuple[str, ...]:
    """Cases of operators that may be cut at all."""
    return tuple(name for name in case_names() if allowed(the_op(example(name))))


@contextmanager
def replaced(op: Op, broken: Callable[[Reference], Reference] | None) -> Iterator[None]:
    """The reference of the operator's kind replaced while ranks run it."""
    if broken is None:
        yield
        return
    with patch.dict(base._REFERENCES, {op.kind: broken(reference(op.kind))}):
        yield


def walked(value: Value, on: Digits, source: Source) -> Iterator[tuple[Array, str]]:
    """The whole array of a value as it lies, and after each of some transfers, with the layout that it has then."""
    yield assemble(value, on), show_spec(value.spec)
    for _ in range(_STEPS):
        axis = source.below(len(value.spec))
        states = _next(value, axis)
        if not states:
            continue
        after = (*value.spec[:axis], source.choice(states), *value.spec[axis + 1 :])
        value = apply_transfer(value, make_transfer(value.tensor.name, value.spec, after), on)
        yield assemble(value, on), show_spec(after)


def _next(value: Value, axis: int) -> list[str]:
    """States that the value may take along an axis. Candidates that are not complete yet cannot be cut along their own
    dim."""
    states = [s for s in (REPLICATED, OWNER, *value.tensor.dims) if collective_of(value.spec[axis], s)]
    incomplete = value.fold is not None and PARTIAL in (*value.spec[:axis], *value.spec[axis + 1 :])
    if incomplete:
        states = [s for s in states if s in STATES or all(s in piece.ids for piece in value.pieces.values())]
    return states


def told(
    graph: Graph, mode: Mode, on: Digits, laid: str, arrays: Mapping[str, Array], wanted: Array, found: Array
) -> str:
    """A counterexample in words."""
    cuts = [c if isinstance(c, str) else f"{c.dim} ({CutKind(c.kind).value})" for c in mode.choices]
    shards = {
        label: [len(on.ids(label, rank, range(len(on.axis_sizes)))) for rank in on.ranks]
        for label in mode.op.labels
        if all((label, axis) in on.owner for axis in range(len(on.axis_sizes)))
    }
    lines = [
        f"{mode.op.kind} over {' × '.join(map(str, on.axis_sizes))} ranks, by {', '.join(cuts)}, laid {laid}",
        f"  extents   {graph.sizes}",
        f"  shards    {shards}",
        *(f"  {name:9} {array.tolist()}" for name, array in arrays.items()),
        f"  whole     {wanted.tolist()}",
        f"  assembled {found.tolist()}",
    ]
    return "\n".join(lines)
