"""Sums taken apart: the same values, from leaves that are taken apart too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import RefusedError
from rooflang.ir.apart import parts_of, taken_apart
from rooflang.ir.evaluate import evaluate, random_leaves
from rooflang.ir.graph import Graph, GraphBuilder


def experts(count: int = 4) -> Graph:
    g = GraphBuilder("experts", batch=3, hidden=2, ffn=2, gate=2, expert=count)
    x = g.input("x", "batch hidden")
    logits = g.op("logits", "matmul", [x, g.weight("w_r", "hidden expert")], "batch expert")
    gates = g.op("route", "route", [logits], "batch expert", top_k=2)
    rows = g.op("dispatch", "dispatch", [x, gates], "batch expert hidden", fill=2 / count)
    up = g.op(
        "up", "gated_matmul", [rows, g.weight("w13", "expert hidden gate ffn")], "batch expert ffn", fill=2 / count
    )
    down = g.op("down", "matmul", [up, g.weight("w2", "expert ffn hidden")], "batch expert hidden", fill=2 / count)
    return g.build(g.op("combine", "combine", [down, gates], "batch hidden"))


def same(graph: Graph, apart: Graph, dim: str, counts: Sequence[int]) -> bool:
    """Do both make the same of the same leaves, exactly?"""
    leaves = random_leaves(graph, 7, exact=True)
    given = dict(leaves)
    for leaf in graph.leaves:
        if dim in leaf.dims:
            for part in parts_of(dim, counts):
                rows = np.arange(part.start, part.stop)
                given[part.name(leaf.name)] = np.take(leaves[leaf.name], rows, leaf.dims.index(dim))
    mine, theirs = evaluate(graph, leaves), evaluate(apart, given)
    return all(np.array_equal(mine[name], theirs[name]) for name in graph.outputs)


@given(st.lists(st.integers(1, 3), min_size=2, max_size=4))
def test_groups_of_experts_add_up(counts: list[int]) -> None:
    graph = experts(max(sum(counts), 2))
    apart = taken_apart(graph, "combine", "expert", counts)
    assert same(graph, apart, "expert", counts)
    assert not {"dispatch", "up", "down"} & set(apart.op_by_name)
    assert apart.op_by_name["combine"].kind == "add"


def test_products_are_taken_apart() -> None:
    g = GraphBuilder("mlp", batch=2, hidden=3, ffn=5)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden ffn")], "batch ffn")
    act = g.op("act", "activation", [up], "batch ffn", function="silu")
    graph = g.build(g.op("down", "matmul", [act, g.weight("w2", "ffn hidden")], "batch hidden"), act)
    apart = taken_apart(graph, "down", "ffn", [2, 3])
    assert same(graph, apart, "ffn", [2, 3])
    assert "act" in apart.op_by_name  # the graph still has it come out
    again = taken_apart(apart, "down.ffn.2-5", "ffn.2-5", [1, 2])
    assert again.sizes["ffn.2-5.1-3"] == 2


def test_parts_are_shared_by_sums() -> None:
    g = GraphBuilder("two", batch=2, hidden=3, ffn=4)
    up = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden ffn")], "batch ffn")
    one = g.op("one", "matmul", [up, g.weight("w2", "ffn hidden")], "batch hidden")
    graph = g.build(one, g.op("two", "matmul", [up, g.weight("w3", "ffn hidden")], "batch hidden"))
    apart = taken_apart(taken_apart(graph, "one", "ffn", [1, 3]), "two", "ffn", [1, 3])
    assert same(graph, apart, "ffn", [1, 3])
    assert len([op for op in apart.ops if op.name.startswith("up.")]) == 2


@pytest.mark.parametrize(
    ("target", "dim", "counts", "code"),
    [
        ("combine", "hidden", [1, 1], "no-sum"),
        ("up", "expert", [2, 2], "no-sum"),
        ("combine", "expert", [4], "uneven"),
        ("combine", "expert", [2, 3], "uneven"),
        ("combine", "expert", [0, 4], "uneven"),
    ],
)
def test_what_is_no_sum_of_parts(target: str, dim: str, counts: list[int], code: str) -> None:
    with pytest.raises(RefusedError) as caught:
        taken_apart(experts(), target, dim, counts)
    assert caught.value.refusal == code
