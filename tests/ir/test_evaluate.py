"""Evaluation of graphs, random leaves that fit their readers, and graphs shrunk without losing their meaning."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.evaluate import evaluate, random_leaves
from rooflang.ir.kinds.fused import FUSIONS
from rooflang.ir.shrink import shrunk
from rooflang.ir.verify import verify

from .cases import CASES, the_op


def lookup() -> Graph:
    """Ids that travel through a move before rows are looked up by them, in two tables."""
    g = GraphBuilder("lookup", batch=50, small=3, large=90, hidden=4)
    ids = g.op("moved", "to_dram", [g.input("ids", "batch", "int32")], "batch", "int32")
    left = g.op("left", "embed", [ids, g.weight("a", "small hidden")], "batch hidden")
    right = g.op("right", "embed", [ids, g.weight("b", "large hidden")], "batch hidden")
    return g.build(g.op("y", "add", [left, right], "batch hidden"))


def test_every_tensor_is_computed() -> None:
    graph = lookup()
    leaves = random_leaves(graph)
    values = evaluate(graph, leaves)
    assert set(values) == set(graph.tensors)
    assert np.array_equal(values["y"], leaves["a"][leaves["ids"]] + leaves["b"][leaves["ids"]])


def test_random_ids_fit_every_table() -> None:
    ids = random_leaves(lookup())["ids"]
    assert set(ids.tolist()) == {0, 1, 2}


def test_random_leaves_are_reproducible() -> None:
    first, again, other = (random_leaves(lookup(), seed) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["a"], other["a"])
    assert abs(first["b"]).max() <= 1


def test_leaves_have_to_be_given_and_fit() -> None:
    graph = lookup()
    leaves = random_leaves(graph)
    with pytest.raises(GraphError, match=r"leaf 'a' has the shape \(3,\)"):
        evaluate(graph, {**leaves, "a": np.zeros(3)})
    del leaves["a"]
    with pytest.raises(UnknownNameError, match="unknown leaf 'a'"):
        evaluate(graph, leaves)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("axes", [(), (2,), (2, 3), (5, 2)])
def test_shrunk_dims_divide(name: str, axes: tuple[int, ...]) -> None:
    graph = CASES[name]()
    small = shrunk(graph, axes)
    free = {"gate", "copy", "chosen", "k", "tap"}
    assert all(size % math.prod(axes) == 0 for label, size in small.sizes.items() if label not in free)
    assert small.ops == graph.ops
    if the_op(graph).kind not in {fusion.name for fusion in FUSIONS}:
        verify(small)
    found = evaluate(small, random_leaves(small))
    assert np.all(np.isfinite(found["y"]))


def test_a_choice_stays_a_choice() -> None:
    g = GraphBuilder("g", batch=8, expert=384, seq=4096, ctx=1024, head=64, width=128, chosen=512, h=7)
    g.op("gates", "route", [g.input("logits", "batch expert")], "batch expert", top_k=6)
    queries = [g.input("q", "batch head width"), g.input("w", "batch head"), g.cache("keys", "batch ctx width")]
    g.op("ids", "index_select", queries, "batch chosen", "int32")
    g.op("entries", "pool", [g.input("x", "batch seq h")], "batch ctx h")
    small = shrunk(g.build(), (2, 2))
    assert small.sizes["expert"] == 12
    assert small.sizes["chosen"] < small.sizes["ctx"]
    assert small.sizes["seq"] == 2 * small.sizes["ctx"]
    gates = evaluate(small, random_leaves(small))["gates"]
    assert (np.count_nonzero(gates, axis=1) == 6).all()
