"""The order of operators in a graph with control edges: paths, memory cells, and pairs whose order can be seen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from rooflang.ir.graph import Graph
from rooflang.ir.op import Op, op_kind

#: A control edge: the first operator ends before the second begins (names).
ControlEdge = tuple[str, str]


def path(graph: Graph, control: Collection[ControlEdge], start: str, end: str) -> tuple[str, ...]:
    """Names of operators on some path of data and control edges from `start` to `end`; empty where there is none."""
    after: dict[str, list[str]] = {op.name: [] for op in graph.ops}
    for op in graph.ops:
        after[op.name].extend(reader.name for reader, _ in graph.consumers.get(op.output.name, ()))
    for first, second in control:
        after[first].append(second)
    came_from: dict[str, str] = {}
    stack = [start]
    while stack:
        name = stack.pop()
        for follower in after[name]:
            if follower not in came_from:
                came_from[follower] = name
                stack.append(follower)
    if end not in came_from:
        return ()
    names = [end]
    while len(names) == 1 or names[-1] != start:
        names.append(came_from[names[-1]])
    return tuple(reversed(names))


def stateful(op: Op) -> bool:
    """Does the operator draw from a generator that keeps a state? Then the order of draws can be seen."""
    kind = op_kind(op.kind)
    return not kind.pure and kind.in_place is None


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Which tensors share memory: what is written in place lies where its operand lay. `alias[t]` is read instead of t
    where the move that made t is left out."""

    home: Mapping[str, str]
    alias: Mapping[str, str]

    @classmethod
    def of(cls, ops: Iterable[Op], *, without: Collection[str] = ()) -> Cells:
        """The cells of operators in topological order, the moves named in `without` being left out."""
        home: dict[str, str] = {}
        alias: dict[str, str] = {}
        for op in ops:
            index = op_kind(op.kind).in_place
            if op.name in without:
                source = op.operands[0].name
                alias[op.output.name] = alias.get(source, source)
            elif index is not None:
                taken = op.operands[index].name
                taken = alias.get(taken, taken)
                home[op.output.name] = home.get(taken, taken)
        return cls(home=home, alias=alias)

    def read(self, tensor: str) -> str:
        """The tensor that is really read."""
        return self.alias.get(tensor, tensor)

    def of_tensor(self, tensor: str) -> str:
        """The cell of a tensor, named after the first tensor that lay there."""
        source = self.read(tensor)
        return self.home.get(source, source)


def overwritten(ops: Iterable[Op]) -> frozenset[str]:
    """Cells that some operator writes in place."""
    known = tuple(ops)
    cells = Cells.of(known)
    return frozenset(cells.of_tensor(op.output.name) for op in known if op_kind(op.kind).in_place is not None)


def conflicts(graph: Graph) -> Iterator[tuple[Op, Op]]:
    """Pairs of operators whose order can be seen: one writes, in place, memory that the other reads or writes, or both
    draw from a generator that keeps a state."""
    cells = Cells.of(graph.ops)
    reads = {op.name: {cells.of_tensor(t.name) for t in op.operands} for op in graph.ops}
    for one, other in combinations(graph.ops, 2):
        if stateful(one) and stateful(other):
            yield one, other
            continue
        for writer, reader in ((one, other), (other, one)):
            written = op_kind(writer.kind).in_place is not None
            if written and cells.of_tensor(writer.output.name) in reads[reader.name]:
                yield writer, reader
                break
