"""Control edges, copies and side effects on trial, on the machine of `world`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.op import Op
from rooflang.ir.tensor import Tensor
from rooflang.rules import add_control_edge, dedup_kernel, dup_kernel, remove_control_edge, remove_identity
from rooflang.rules.order import ControlEdge, conflicts, path
from rooflang.rules.record import Ok, Verdict
from rooflang.soundness.source import Source
from rooflang.soundness.world import Outcome, Program

Check = Callable[..., Verdict]

#: Operators of a random graph: all orders of so many are tried.
_OPS = 5

_KINDS = ("activation", "attention", "to_dram", "kv_append", "conv_push", "stateful_sample")


def random_graph(source: Source) -> Graph:
    """Operators that read what others made, copy caches, write them in place, and draw random numbers."""
    g = GraphBuilder("machine", batch=2, window=2, width=2)
    entries = [g.input("entry", "batch width")]
    caches = [g.cache(f"cache{n}", "batch window width", "bf16") for n in range(1 + source.below(2))]
    for n in range(source.integer(2, _OPS)):
        _add(g, f"op{n}", entries, caches, source)
    return g.build()


def _add(g: GraphBuilder, name: str, entries: list[Tensor], caches: list[Tensor], source: Source) -> None:
    """One more operator; what it makes may be read by those after it."""
    entry, cache, kind = source.choice(entries), source.choice(caches), source.choice(_KINDS)
    if kind in ("kv_append", "conv_push"):
        caches.append(g.op(name, kind, [entry, cache], "batch window width"))
    elif kind == "to_dram":
        caches.append(g.op(name, kind, [cache], "batch window width"))
    elif kind == "attention":
        entries.append(g.op(name, kind, [entry, cache], "batch width", parts=("window",)))
    elif kind == "activation":
        entries.append(g.op(name, kind, [entry], "batch width"))
    else:
        g.op(name, kind, [entry], "batch", "int32")


def random_edges(graph: Graph, source: Source) -> list[ControlEdge]:
    """Control edges without a cycle: all of them follow one order that the data allow."""
    order = _some_order(graph, source)
    pairs = [(a.name, b.name) for i, a in enumerate(order) for b in order[i + 1 :]]
    sparse = source.integer(2, 4)
    return [edge for edge in pairs if source.chance(sparse)]


def _some_order(graph: Graph, source: Source) -> list[Op]:
    left, order = list(graph.ops), list[Op]()
    while left:
        made = {op.output.name for op in left}
        order.append(source.choice([op for op in left if not any(t.name in made for t in op.operands)]))
        left.remove(order[-1])
    return order


def _taken(source: Source, check: Callable[[Graph, Op], Verdict]) -> tuple[Graph, Op]:
    """A random graph and an operator of it that a rule takes."""
    graph = random_graph(source)
    op = source.choice(graph.ops)
    source.suits(isinstance(check(graph, op), Ok))
    return graph, op


@dataclass(frozen=True, kw_only=True)
class AddedEdges:
    """A claim: a control edge that is taken leaves some order, and nothing comes out that could not before."""

    check: Check = add_control_edge.check

    def __call__(self, source: Source) -> str | None:
        graph = random_graph(source)
        control = random_edges(graph, source)
        edge = (source.choice(graph.ops).name, source.choice(graph.ops).name)
        source.suits(isinstance(self.check(graph, *edge, control=control), Ok))
        program = Program(graph=graph)
        after = program.outcomes([*control, edge])
        if not after:
            return f"{edge[1]} would wait for {edge[0]}, and that for {edge[1]}\n{_shown(graph, control)}"
        return _new(program.outcomes(control), after, f"with {edge}", graph, control)


@dataclass(frozen=True, kw_only=True)
class RemovedEdges:
    """A claim: when a control edge of a program without races may go, still the same comes out."""

    check: Check = remove_control_edge.check

    def __call__(self, source: Source) -> str | None:
        graph = random_graph(source)
        control = random_edges(graph, source)
        source.suits(bool(control))
        edge = source.choice(control)
        source.suits(all(_ordered(graph, control, a.name, b.name) for a, b in conflicts(graph)))
        source.suits(isinstance(self.check(graph, *edge, control=control), Ok))
        program = Program(graph=graph)
        rest = program.outcomes([other for other in control if other != edge])
        return _new(program.outcomes(control), rest, f"without {edge}", graph, control)


@dataclass(frozen=True, kw_only=True)
class RemovedMoves:
    """A claim: when a move may be left out, nothing comes out without it that could not before."""

    check: Check = remove_identity.check

    def __call__(self, source: Source) -> str | None:
        graph, op = _taken(source, lambda graph, op: self.check(op, ops=graph.ops))
        control = random_edges(graph, source)
        before = Program(graph=graph).outcomes(control)
        after = Program(graph=graph, without=frozenset({op.name})).outcomes(control)
        return _new(before, after, f"without {op.name}", graph, control)


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A claim: an operator that every coordinate may run may as well be run several times: all see the same."""

    check: Check = dup_kernel.check

    def __call__(self, source: Source) -> str | None:
        graph, op = _taken(source, lambda graph, op: self.check(op))
        program, times = Program(graph=graph), 1 + source.ranks()
        again = [each for each in graph.ops for _ in range(times if each is op else 1)]
        if program.run(again) == program.run(graph.ops):
            return None
        return f"{op.kind} {op.name} run {times} times leaves something else\n{_shown(graph, [])}"


@dataclass(frozen=True, kw_only=True)
class Owned:
    """A claim: an operator that its owner may run alone leaves all coordinates as if each of them had run it."""

    check: Check = dedup_kernel.check

    def __call__(self, source: Source) -> str | None:
        graph, op = _taken(source, lambda graph, op: self.check(op))
        program, ranks = Program(graph=graph), source.ranks()
        if program.run(graph.ops, coordinates=ranks, owned=op.name) == program.run(graph.ops, coordinates=ranks):
            return None
        return f"{op.kind} {op.name} run by its owner alone, of {ranks} coordinates\n{_shown(graph, [])}"


def _ordered(graph: Graph, control: list[ControlEdge], a: str, b: str) -> bool:
    return bool(path(graph, control, a, b) or path(graph, control, b, a))


def _new(
    before: frozenset[Outcome], after: frozenset[Outcome], what: str, graph: Graph, control: list[ControlEdge]
) -> str | None:
    fresh = sorted(map(str, after - before))
    return f"{what} this becomes possible: {fresh[0]}\n{_shown(graph, control)}" if fresh else None


def _shown(graph: Graph, control: list[ControlEdge]) -> str:
    ops = [f"  {op.name} = {op.kind}({', '.join(t.name for t in op.operands)})" for op in graph.ops]
    return "\n".join([*ops, *(f"  {first} before {second}" for first, second in control)])
