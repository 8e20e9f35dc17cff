"""The lifted evaluator: a layout of a graph as the ranks of a mesh run it, on NumPy arrays.

It takes modes and transfers at their word. If what they say is not sound, the arrays that come out differ from those of
the unsharded graph, or ranks hold shares that do not fit together, which is a `PlacementError`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

import numpy as np

from rooflang.errors import PlacementError
from rooflang.ir.cut import OWNER, PARTIAL, STATES, Cut, CutKind, show_spec
from rooflang.ir.digits import Digits, Rank
from rooflang.ir.evaluate import evaluate, leaf_array, reads_short
from rooflang.ir.exact import is_exact, settled, shortened
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.recall import RECALL
from rooflang.ir.layout import Mode, Transfer, source_of
from rooflang.ir.op import Op
from rooflang.ir.pieces import Combine, Piece, all_reduce
from rooflang.ir.reference.base import Array, State, Where, reference
from rooflang.ir.values import Value, apply_transfer, assemble, checked, finished, fold_of, lines_of, moved, place

__all__ = [
    "Digits",
    "Laid",
    "Value",
    "apply_transfer",
    "assemble",
    "check_layout",
    "evaluate_layout",
    "place",
    "run_mode",
]

# -- operators --------------------------------------------------------------------------------------------------------


def run_mode(mode: Mode, operands: Sequence[Value], digits: Digits) -> Value:
    """The output of an operator in a mode, every rank running its share. Summaries are exchanged and routed rows travel
    inside.

    Raises `PlacementError` where an operand does not lie as the mode reads it.
    """
    for value, spec in zip(operands, mode.operands, strict=True):
        if value.spec != spec or value.fold is not None:
            laid = "a state of " + value.fold.kind if value.fold else show_spec(value.spec)
            raise PlacementError(f"{mode.op.name} reads {value.tensor.name} {show_spec(spec)}", where=f"it is {laid}")
    op, known = mode.op, reference(mode.op.kind)
    arrived = [_route_in(mode, index, value, digits) for index, value in enumerate(operands)]
    shares = {rank: _where(mode, rank, digits) for rank in digits.ranks if _runs(mode, rank)}
    arrays = {rank: [_read(value.pieces[rank], where) for value in arrived] for rank, where in shares.items()}
    summaries: dict[Rank, State] = dict.fromkeys(shares, ())
    if known.summary is not None:
        summary = known.summary
        summaries = {rank: summary.of(op, where, arrays[rank]) for rank, where in shares.items()}
        for axis in _axes_of(mode, CutKind.STAT, CutKind.FOLD, CutKind.SCAN):
            summaries = _exchanged(summaries, axis, lambda a, b: summary.merge(op, a, b), digits)
    folded = bool(known.fold and _axes_of(mode, CutKind.FOLD))
    pieces = {}
    for rank, where in shares.items():
        state = settled(known.run(op, where, summaries[rank], arrays[rank]), arrays[rank])
        dims = fold_of(op).dims(op) if known.fold else (op.output.dims,)
        ids = {label: where.ids[label] for label in dict.fromkeys(d for each in dims for d in each if d)}
        piece = Piece(arrays=state, dims=dims, ids=ids)
        pieces[rank] = piece if folded or not known.fold else finished(piece, op, digits)
    made = Value(tensor=op.output, spec=mode.out, pieces=pieces, fold=op if folded else None)
    return checked(_route_out(mode, made, digits), digits)


def _runs(mode: Mode, rank: Rank) -> bool:
    """Does this rank run the operator? Only the first coordinate of an `OWNER` axis does."""
    return all(rank[axis] == 0 for axis, choice in enumerate(mode.choices) if choice == OWNER)


def _axes_of(mode: Mode, *kinds: CutKind) -> tuple[int, ...]:
    return tuple(a for a, choice in enumerate(mode.choices) if isinstance(choice, Cut) and choice.kind in kinds)


def _where(mode: Mode, rank: Rank, digits: Digits) -> Where:
    """The share of every label that a rank computes: what any operand or the output is cut along."""
    axes: dict[str, list[int]] = {label: [] for label in mode.op.labels}
    for axis, choice in enumerate(mode.choices):
        if isinstance(choice, Cut):
            cut = {choice.dim} if choice.kind is CutKind.ROUTE else {*choice.operands, choice.out} - STATES
            for label in cut:
                if label not in axes:
                    raise PlacementError(f"{mode.op.name} has no dim {label!r} to cut")
                axes[label].append(axis)
    return Where(ids={label: digits.ids(label, rank, cut) for label, cut in axes.items()}, sizes=digits.sizes)


def _read(piece: Piece, where: Where) -> Array:
    """The array of an operand; one that is whole along a label that the rank shares is sliced here."""
    for label in piece.ids:
        piece = piece.take(label, where.ids[label])
    return piece.arrays[0]


def _exchanged(states: Mapping[Rank, State], axis: int, combine: Combine, digits: Digits) -> dict[Rank, State]:
    """Summaries after an all-reduce along one axis."""
    out: dict[Rank, State] = {}
    for line, held in lines_of(states, axis, digits):
        total = all_reduce([Piece(arrays=state, dims=(), ids={}) for state in held], combine)
        out.update({rank: piece.arrays for rank, piece in zip(line, total)})
    return out


def _route_in(mode: Mode, index: int, value: Value, digits: Digits) -> Value:
    """A routed operand (rows cut by experts) sent to the ranks of its tokens."""
    for axis in _axes_of(mode, CutKind.ROUTE):
        cut = mode.cut(axis)
        assert cut is not None
        if cut.operands[index] not in (cut.dim, *STATES):
            value = moved(value, axis, cut.dim, "all_to_all", digits)
    return value


def _route_out(mode: Mode, value: Value, digits: Digits) -> Value:
    """A routed output (rows cut by tokens) sent to the ranks of its experts."""
    cuts = {axis: mode.cut(axis) for axis in _axes_of(mode, CutKind.ROUTE)}
    routed = {axis: cut for axis, cut in cuts.items() if cut is not None and cut.out != cut.dim}
    value = replace(value, spec=tuple(routed[a].dim if a in routed else e for a, e in enumerate(value.spec)))
    for axis, cut in routed.items():
        value = moved(value, axis, cut.out, "all_to_all", digits)
    return value


# -- layouts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """How a graph lies over a mesh of so many coordinates an axis; all names are those of the graph.

    `modes[t]` is the mode of the kernel that makes tensor t; operators fused into another kernel and removed identities
    have none. `paths[(t, i)]` lead operand i of that kernel from where it was made, or from where its block left it
    (`exits`), to what the kernel reads. `aliases[t]` is read instead of t. Leaves lie as their readers want them.
    """

    axis_sizes: Sequence[int]
    modes: Mapping[str, Mode]
    paths: Mapping[tuple[str, int], Sequence[Transfer]] = field(default_factory=dict)
    exits: Mapping[str, Sequence[Transfer]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def walks(self) -> list[Sequence[Transfer]]:
        """All transfers, path by path."""
        return [*self.paths.values(), *self.exits.values()]


def evaluate_layout(
    graph: Graph, laid: Laid, leaves: Mapping[str, Array], *, short: Collection[str] = ()
) -> dict[str, Array]:
    """Every tensor that a layout of the graph makes, run rank by rank and assembled.

    Kernels read exact values of the tensors in `short` shortened, as `evaluate` does. Raises `PlacementError` where the
    pieces do not fit together.
    """
    run = _Layout(graph, laid, leaves, short)
    for op in graph.ops:
        if op.output.name in laid.modes:
            run.kernel(op)
        if op.output.name in laid.exits:
            run.leave(op.output.name)
    values = {name: assemble(value, run.digits) for name, value in run.made.items()}
    for name, value in run.left.items():
        values.setdefault(name, assemble(value, run.digits))
    return values


class _Layout:
    """The values of a layout as they come to be: `made` by kernels, `left` by blocks for others to read."""

    def __init__(self, graph: Graph, laid: Laid, leaves: Mapping[str, Array], short: Collection[str]) -> None:
        self.graph, self.laid, self.leaves, self.short = graph, laid, leaves, short
        self.made: dict[str, Value] = {}
        self.left: dict[str, Value] = {}
        self.digits = _digits(graph, laid)

    def kernel(self, op: Op) -> None:
        """Run the kernel that makes the output of `op`."""
        mode = self.laid.modes[op.output.name]
        operands = [self._operand(op, mode, index) for index in range(len(mode.op.operands))]
        self.made[op.output.name] = run_mode(mode, operands, self.digits)

    def leave(self, name: str) -> None:
        """Take a tensor from where it was made to where its block leaves it."""
        self.left[name] = self._after(self._made(name), self.laid.exits[name])

    def _operand(self, op: Op, mode: Mode, index: int) -> Value:
        tensor = mode.op.operands[index]
        steps = self.laid.paths.get((op.output.name, index), ())
        source = source_of(self.laid.aliases, tensor.name)
        maker = self.graph.producer.get(tensor.name)
        if source not in self.graph.producer:
            spec = steps[0].before if steps else mode.operands[index]
            start = place(tensor, leaf_array(self.graph, replace(tensor, name=source), self.leaves), spec, self.digits)
        elif maker is not None and maker.block != op.block and tensor.name in self.left:
            start = self.left[tensor.name]
        else:
            start = self._made(tensor.name)
        arrived = self._after(start, steps)
        return _short(arrived) if tensor.name in reads_short(mode.op, self.short) else arrived

    def _after(self, value: Value, steps: Sequence[Transfer]) -> Value:
        for step in steps:
            value = apply_transfer(value, step, self.digits)
        return value

    def _made(self, name: str) -> Value:
        source = source_of(self.laid.aliases, name)
        if source not in self.made:
            raise PlacementError(f"no kernel of the layout makes {source} before it is read", where=self.graph.name)
        return self.made[source]


def cut_labels(graph: Graph, laid: Laid) -> dict[str, set[int]]:
    """For every label the axes that cut it anywhere in a layout."""
    specs = {spec for mode in laid.modes.values() for spec in (*mode.operands, mode.out)}
    specs |= {spec for steps in laid.walks for step in steps for spec in (step.before, step.after)}
    cuts: dict[str, set[int]] = {label: set() for label in graph.sizes}
    for spec in specs:
        for axis, entry in enumerate(spec):
            if entry not in STATES:
                cuts[entry].add(axis)
    return cuts


def _digits(graph: Graph, laid: Laid) -> Digits:
    """Nested digits for every axis that cuts a label anywhere in the layout."""
    cuts = cut_labels(graph, laid)
    rows = [choice for mode in laid.modes.values() for choice in mode.choices if isinstance(choice, Cut)]
    pooled = dict.fromkeys((row.grouped[0], row.grouped[1]) for row in rows if row.grouped)
    aligned: dict[str, int] = {}
    for row in rows:
        aligned[row.dim] = lcm(aligned.get(row.dim, 1), row.multiple_of)
    return Digits.nested(laid.axis_sizes, graph.sizes, cuts, pooled, aligned)


def _short(value: Value) -> Value:
    """Each number by itself, so that it does not matter how the value lies; but its pieces must not be summands."""
    pieces = {
        rank: replace(piece, arrays=tuple(shortened(a) for a in piece.arrays)) for rank, piece in value.pieces.items()
    }
    return replace(value, pieces=pieces)


def _may_be_short(graph: Graph, modes: Mapping[str, Mode]) -> frozenset[str]:
    """Tensors that kernels may read shortened: those that no kernel reads as summands and none computes inside, and not
    those that lead to only one of what a recall takes."""
    made = {op.output.name for op in graph.ops}
    for mode in modes.values():
        made -= {t.name for t, spec in zip(mode.op.operands, mode.operands, strict=True) if PARTIAL in spec}
        inside = (graph.op_by_name[name].output.name for name in mode.covers)
        made -= {name for name in inside if name != mode.op.output.name}
    for op in graph.ops:
        if op.kind == RECALL:
            # What is computed anew and what was kept go different ways to the same numbers.
            one, other = ({t.name, *_before(graph, t.name)} for t in op.operands)
            made -= one ^ other
    return frozenset(made)


def _before(graph: Graph, tensor: str) -> frozenset[str]:
    """The tensors that a tensor is computed from."""
    found: set[str] = set()
    stack = [tensor]
    while stack:
        op = graph.producer.get(stack.pop())
        fresh = {t.name for t in op.operands} - found if op is not None else set()
        found |= fresh
        stack += fresh
    return frozenset(found)


def check_layout(graph: Graph, laid: Laid, leaves: Mapping[str, Array]) -> None:
    """Raise `PlacementError` that names the first tensor which a layout computes otherwise than the graph does.

    Floats may differ by rounding (1e-7 of the largest in their tensor), ids and exact numbers may not. The outputs have
    to be made.
    """
    short = _may_be_short(graph, laid.modes) if any(is_exact(array) for array in leaves.values()) else frozenset()
    expected = evaluate(graph, leaves, short=short)
    found = evaluate_layout(graph, laid, leaves, short=short)
    for op in graph.ops:
        name = op.output.name
        if name in found:
            worst = np.max(np.abs(found[name] - expected[name]), initial=0.0)
            exact = is_exact(expected[name]) or np.issubdtype(expected[name].dtype, np.integer)
            allowed = 0.0 if exact else 1e-7 * np.max(np.abs(expected[name]), initial=1.0)
            if not worst <= allowed:
                shown = worst if is_exact(expected[name]) else f"{worst:.3g}"
                raise PlacementError(f"{name} differs by up to {shown} from the unsharded graph", where=graph.name)
    for name in graph.outputs:
        if name not in found and name not in laid.aliases:
            raise PlacementError(f"no kernel of the layout makes the output {name}", where=graph.name)
