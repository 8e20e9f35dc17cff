"""add_control_edge: one operator waits for another, without reading from it."""

from __future__ import annotations

from collections.abc import Collection

from rooflang.ir.graph import Graph
from rooflang.rules.examples import decode_step
from rooflang.rules.order import ControlEdge, path
from rooflang.rules.record import Exactness, Ok, Refusal, Rule, Verdict

NAME = "add_control_edge"


def check(graph: Graph, before: str, after: str, *, control: Collection[ControlEdge] = ()) -> Verdict:
    """May operator `after` wait for operator `before`, given the control edges so far? `Ok` carries the edge."""
    for name in (before, after):
        if name not in graph.op_by_name:
            return Refusal(code="no-such-op", reason=f"{graph.name} has no operator {name!r}")
    back = (before,) if before == after else path(graph, control, after, before)
    if back:
        return Refusal(code="cycle", reason=f"{after} would wait for itself: {' → '.join((*back, after))}")
    return Ok(result=(before, after))


RULE = Rule(
    name=NAME,
    summary="make an operator wait for another one: order, contention and memory peaks change, values do not",
    before="a, b in any order",
    after="a, then b",
    why="a value depends on operands, never on when they were computed; the orders that have a before b remain",
    preconditions=("both operators are in the graph", "no path leads from b to a: it would close a cycle"),
    exactness=Exactness.EXACT,
    evidence="on random graphs every edge that it takes leaves some order, and in every order what came out before",
    check=check,
    fires=lambda: check(decode_step(), "save", "append"),
    refused=lambda: check(decode_step(), "attend", "append"),
)
