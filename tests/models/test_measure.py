"""What is read off a graph, on one small enough to count by hand."""

from __future__ import annotations

import pytest

from rooflang.assumptions import PAPER
from rooflang.ir import Graph, GraphBuilder, Role
from rooflang.models import measure


@pytest.fixture
def graph() -> Graph:
    """Two requests; a dense product, one over 4 experts of which 1 is chosen, and attention to 3 of 12 entries."""
    g = GraphBuilder("tiny", batch=2, hidden=8, expert=4, ffn=16, window=5, ctx=12, width=4, vocab=32, chosen=1)
    x = g.op("rows", "embed", [g.input("ids", "batch", "int32"), g.weight("table", "vocab hidden")], "batch hidden")
    gates = g.op("route", "hash_route", [
        g.op("logits", "matmul", [x, g.weight("router", "hidden expert")], "batch expert", "fp32"),
        g.input("ids", "batch", "int32"),
        g.weight("choice", "vocab chosen", "int64"),
    ], "batch expert", "fp32", fill=0.25)  # fmt: skip
    rows = g.op("dispatch", "dispatch", [x, gates], "batch expert hidden", fill=0.25)
    out = g.op("expert", "matmul", [rows, g.weight("w", "expert hidden ffn", "fp8")], "batch expert ffn", fill=0.25)
    caches = [
        g.cache("near", "batch window hidden"),
        g.cache("far", "batch ctx hidden"),
        g.cache("keys", "batch ctx width", "fp4"),
    ]
    parts = ("window", "context", "index")
    y = g.op("attention", "attention", [x, *caches], "batch hidden", parts=parts, select=3, index_heads=2)
    return g.build(out, y)


def test_parameters_leave_integer_tables_out(graph: Graph) -> None:
    assert measure.parameters(graph) == 32 * 8 + 8 * 4 + 4 * 8 * 16


def test_a_token_meets_its_share_of_the_experts(graph: Graph) -> None:
    assert measure.active_parameters(graph) == 32 * 8 + 8 * 4 + 8 * 16


def test_weight_bytes_count_every_table(graph: Graph) -> None:
    assert measure.weight_bytes(graph) == 2 * (32 * 8 + 8 * 4) + 4 * 8 * 16 + 8 * 32 * 1


def test_cache_of_a_request(graph: Graph) -> None:
    assert measure.kv_footprint_bytes(graph) == (5 + 12) * 8 + 12 * 2
    assert graph.leaf_bytes(Role.KV_CACHE) == 2 * ((5 + 12) * 8 + 12 * 2)


def test_a_step_reads_the_window_the_chosen_entries_and_all_index_keys(graph: Graph) -> None:
    assert measure.kv_read_bytes(graph, PAPER) == pytest.approx((5 + 3) * 8 + 12 * 2)
