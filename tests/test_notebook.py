"""What notebooks show of results, layouts, graphs and sessions: tables that are whole, short and escaped."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import rooflang
from rooflang import Cluster, GraphBuilder, Layout
from rooflang.agent import Session
from rooflang.ir import Graph
from rooflang.models import Workload, load
from rooflang.notebook import ROWS, html_table, text_table

CLUSTER = Cluster.of("b300", gpus=8)


@pytest.fixture(scope="module")
def graph() -> Graph:
    g = GraphBuilder("mlp", batch=64, hidden=1024, ffn=4096)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden ffn")], "batch ffn")
    return g.build(g.op("down", "matmul", [up, g.weight("w2", "ffn hidden")], "batch hidden"))


def rows(html: str) -> list[list[str]]:
    """The cells of a table, which has to be well formed."""
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    return [[cell.text or "" for cell in row] for row in tree.iter("tr")]


def test_everything_is_escaped() -> None:
    html = html_table("<b>", ["&"], [["<script>"]], note="a < b")
    assert "<script>" not in html and "<b>" not in html
    assert rows(html) == [["&"], ["<script>"]]


def test_long_tables_end(graph: Graph) -> None:
    whole = load("deepseek-v4-pro").build(Workload(stage="decode", context=65536, batch=1))
    html = whole._repr_html_()
    assert len(rows(html)) == ROWS + 1
    assert f"{len(whole.ops) - ROWS:,} more rows" in html


def test_graphs_layouts_and_sessions(graph: Graph) -> None:
    assert [row[0] for row in rows(graph._repr_html_())] == ["operator", "up", "down"]
    layout = Layout.start(graph, CLUSTER, mesh=[8]).split_kernel("up", "ffn")
    assert rows(layout._repr_html_()) == [
        ["operator", "kind", "x: 8"],
        ["up", "matmul", "ffn"],
        ["down", "matmul", "R"],
    ]
    session = Session.start(graph, hardware=CLUSTER)
    session.apply("set_compute graph mesh=8 stages=1")
    session.apply("split_kernel up dim=ffn axis=x")
    assert rows(session._repr_html_())[1:] == [
        ["1", "set_compute graph mesh=8 stages=1", ""],
        ["2", "split_kernel up dim=ffn axis=x", ""],
    ]


def test_results(graph: Graph) -> None:
    result = rooflang.optimize(graph, hardware=CLUSTER)
    found = rows(result._repr_html_())
    assert len(found) == len(result.frontier) + 1
    assert found[1][-1] == result.frontier[0].plan
    assert result.frontier[0].plan in result.frontier[0]._repr_html_()


def test_what_a_prompt_shows_of_results(graph: Graph) -> None:
    result = rooflang.optimize(graph, hardware=CLUSTER)
    title, heads, *lines, note = repr(result).splitlines()
    assert title == f"{graph.name} on 8 b300"
    assert heads.split()[:3] == ["batch", "PP", "mesh"]
    assert len(lines) == len(result.frontier)
    assert len({len(heads), *map(len, lines)}) == 1
    assert note == "stopped by: complete"
    point = result.frontier[0]
    assert repr(point).startswith(f"<Point: batch {point.batch:,}, PP {point.pp}, mesh ")
    assert repr(point).endswith(f"; {point.plan}>")


def test_long_tables_end_in_text_too() -> None:
    lines = text_table("title", ["n"], [[str(n)] for n in range(ROWS + 3)]).splitlines()
    assert len(lines) == 2 + ROWS + 1
    assert lines[-1] == "3 more rows"
