"""The order of operators in a graph with control edges: paths, and the pairs that share memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator

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


def memory_conflicts(graph: Graph) -> Iterator[tuple[Op, Op]]:
    """Pairs (writer, reader): the writer overwrites, in place, memory that the reader reads under its old name."""
    for writer in graph.ops:
        index = op_kind(writer.kind).in_place
        if index is not None:
            for reader, _ in graph.consumers[writer.operands[index].name]:
                if reader is not writer:
                    yield writer, reader
