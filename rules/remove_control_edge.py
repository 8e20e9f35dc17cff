"""remove_control_edge: an operator no longer waits for another one that it does not read from."""

from __future__ import annotations

from collections.abc import Collection

from rooflang.ir.graph import Graph
from rooflang.rules.examples import decode_step
from rooflang.rules.order import ControlEdge, conflicts, path, stateful
from rooflang.rules.record import Exactness, Ok, Refusal, Rule, Verdict

NAME = "remove_control_edge"


def check(graph: Graph, before: str, after: str, *, control: Collection[ControlEdge]) -> Verdict:
    """May the control edge be dropped? `Ok` carries the edge."""
    edge = (before, after)
    if edge not in control:
        reason = f"no control edge leads from {before} to {after}; an order that data need cannot be removed"
        return Refusal(code="no-such-edge", reason=reason)
    rest = [other for other in control if other != edge]
    for one, other in conflicts(graph):
        first, second = (one.name, other.name)
        if path(graph, control, second, first):
            first, second = second, first
        if path(graph, control, first, second) and not path(graph, rest, first, second):
            what = "draw from one generator" if stateful(one) else "share memory that is overwritten"
            reason = f"{first} and {second} {what}: their order would be left open"
            return Refusal(code="memory-order", reason=reason)
    return Ok(result=edge)


RULE = Rule(
    name=NAME,
    summary="drop a wait: more orders become possible, values do not change",
    before="a, then b",
    after="a, b in any order",
    why="a value depends on operands, never on when they were computed, unless memory or a generator is changed",
    preconditions=(
        "the edge is a control edge, no data edge",
        "no order between a write in place and another use of that memory hangs on it",
        "no order of two draws from a generator with a state hangs on it",
    ),
    exactness=Exactness.EXACT,
    evidence="on random graphs without races, all orders that are left give what the orders before gave",
    check=check,
    fires=lambda: check(decode_step(), "save", "attend", control=[("save", "append"), ("save", "attend")]),
    refused=lambda: check(decode_step(), "save", "append", control=[("save", "append")]),
)
