"""A machine with memory, on which the order of operators matters: what control edges, copies and side effects do.

Values are terms: an operator's kind and attributes over what it read. Two values are equal if their terms are, so that
nothing is equal by accident. Every tensor lies in a memory cell. An operator that writes in place puts its result into
the cell of the operand that it takes over, and whoever reads that cell later reads the result. Every coordinate of an
axis has memory of its own, and a generator of random numbers whose state each draw moves on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rooflang.ir.graph import Graph
from rooflang.ir.kinds.elementwise import MOVES
from rooflang.ir.kinds.recall import RECALL
from rooflang.ir.op import Op, op_kind
from rooflang.ir.tensor import RESIDENT_ROLES
from rooflang.rules.order import Cells, ControlEdge, stateful

#: A nested tuple.
Term = tuple[object, ...]

#: What can be seen of a run on one coordinate: outputs, what stays in memory, and draws from its generator.
Outcome = tuple[object, ...]

_NOTHING: Term = ("nothing",)


@dataclass(slots=True)
class _Coordinate:
    """Memory by cell, values received from another coordinate by tensor, and draws so far."""

    memory: dict[str, Term]
    received: dict[str, Term] = field(default_factory=dict)
    draws: int = 0


@dataclass(frozen=True, kw_only=True)
class Program:
    """A graph to be run operator by operator, but for the moves in `without`: who reads them reads their operand."""

    graph: Graph
    without: frozenset[str] = frozenset()

    @property
    def cells(self) -> Cells:
        return Cells.of(self.graph.ops, without=self.without)

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(op for op in self.graph.ops if op.name not in self.without)

    def run(self, order: Sequence[Op], *, coordinates: int = 1, owned: str = "") -> tuple[Outcome, ...]:
        """Outcomes by coordinate. Operators run in this order, an operator that is there twice runs twice.

        The one named `owned` runs on the first coordinate, which sends what it makes to the others: into memory of its
        own there, not into what the operator would have overwritten.
        """
        cells = self.cells
        start = {leaf.name: (leaf.name,) for leaf in self.graph.leaves}
        all_ = [_Coordinate(dict[str, Term](start)) for _ in range(coordinates)]
        for op in order:
            for at, coordinate in enumerate(all_):
                if op.name == owned and at:
                    _receive(op, coordinate, all_[0], cells)
                else:
                    _step(op, coordinate, cells)
        return tuple(self._seen(coordinate, cells) for coordinate in all_)

    def _seen(self, coordinate: _Coordinate, cells: Cells) -> Outcome:
        residents = (leaf.name for leaf in self.graph.leaves if leaf.role in RESIDENT_ROLES)
        return (
            tuple(_read(coordinate, name, cells) for name in self.graph.outputs),
            tuple(coordinate.memory[name] for name in residents),
            coordinate.draws,
        )

    def orders(self, control: Collection[ControlEdge] = ()) -> Iterator[list[Op]]:
        """Every order in which each operator comes after those whose results it reads, and after its control edges."""
        cells = self.cells
        made = {op.output.name: op.name for op in self.ops}
        read = {op.name: [cells.read(t.name) for t in op.operands] for op in self.ops}
        before = {name: {made[t] for t in tensors if t in made} for name, tensors in read.items()}
        for first, second in self._bridged(control):
            before[second].add(first)
        yield from _orders(self.ops, before)

    def _bridged(self, control: Collection[ControlEdge]) -> set[ControlEdge]:
        """Control edges; what waited for a move that is left out waits for what the move waited for."""
        edges = set(control)
        for gone in self.without:
            move = self.graph.op_by_name[gone]
            maker = self.graph.producer.get(move.operands[0].name)
            first = {a for a, b in edges if b == gone} | ({maker.name} if maker is not None else set())
            then = {b for a, b in edges if a == gone}
            edges = {edge for edge in edges if gone not in edge} | {(a, b) for a in first for b in then}
        return edges

    def outcomes(self, control: Collection[ControlEdge] = ()) -> frozenset[Outcome]:
        """What may come of it, in any order that data and control edges allow; nothing if they form a cycle."""
        return frozenset(self.run(order)[0] for order in self.orders(control))


def _read(coordinate: _Coordinate, tensor: str, cells: Cells) -> Term:
    source = cells.read(tensor)
    if source in coordinate.received:
        return coordinate.received[source]
    return coordinate.memory.get(cells.of_tensor(source), _NOTHING)


def _receive(op: Op, coordinate: _Coordinate, sender: _Coordinate, cells: Cells) -> None:
    cell = cells.of_tensor(op.output.name)
    if op_kind(op.kind).in_place is None:
        coordinate.memory[cell] = sender.memory[cell]
    else:
        coordinate.received[op.output.name] = sender.memory[cell]


def _step(op: Op, coordinate: _Coordinate, cells: Cells) -> None:
    read = tuple(_read(coordinate, t.name, cells) for t in op.operands)
    term: Term = read[0] if op.kind in (*MOVES, RECALL) else (op.kind, op.attrs, read)
    if stateful(op):
        coordinate.draws += 1
        term = (*term, coordinate.draws)
    coordinate.memory[cells.of_tensor(op.output.name)] = term


def _orders(ops: Sequence[Op], before: Mapping[str, set[str]]) -> Iterator[list[Op]]:
    if not ops:
        yield []
        return
    waiting = {op.name for op in ops}
    for op in ops:
        if not before[op.name] & waiting:
            for rest in _orders([other for other in ops if other is not op], before):
                yield [op, *rest]
