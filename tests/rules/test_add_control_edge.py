"""add_control_edge: any order that keeps the graph acyclic."""

from __future__ import annotations

from itertools import product

import networkx
import pytest

from rooflang.rules import rule
from rooflang.rules.examples import decode_step
from rooflang.rules.record import Ok, Refusal

RULE = rule("add_control_edge")
NAMES = tuple(op.name for op in decode_step().ops)


def order(control: list[tuple[str, str]]) -> networkx.DiGraph:
    graph = decode_step()
    out = networkx.DiGraph(control)
    out.add_nodes_from(NAMES)
    out.add_edges_from(
        (graph.producer[t.name].name, op.name) for op in graph.ops for t in op.operands if t.name in graph.producer
    )
    return out


@pytest.mark.parametrize("control", [[], [("save", "append")], [("copy", "save")]])
def test_it_is_refused_exactly_where_it_would_close_a_cycle(control: list[tuple[str, str]]) -> None:
    for before, after in product(NAMES, repeat=2):
        acyclic = networkx.is_directed_acyclic_graph(order([*control, (before, after)]))
        verdict = RULE.check(decode_step(), before, after, control=control)
        assert isinstance(verdict, Ok if acyclic else Refusal), (before, after)


def test_the_refusal_names_the_cycle() -> None:
    refused = RULE.check(decode_step(), "copy", "append")
    assert isinstance(refused, Refusal)
    assert refused.code == "cycle"
    assert "append → attend → copy → append" in refused.reason


def test_an_unknown_operator_is_refused() -> None:
    refused = RULE.check(decode_step(), "append", "nothing")
    assert isinstance(refused, Refusal)
    assert refused.code == "no-such-op"
