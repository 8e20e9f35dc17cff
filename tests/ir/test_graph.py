"""Graphs: what the builder makes, the tables of a graph, its hash, other extents."""

from __future__ import annotations

import doctest

import networkx
import pytest

from rooflang.errors import GraphError, UnknownNameError, ValueRangeError
from rooflang.ir import Graph, GraphBuilder, Role
from rooflang.ir import graph as graph_module


def mlp() -> Graph:
    g = GraphBuilder("mlp", batch=64, hidden=16)
    g.dim("ffn", 32, "inner width")
    x = g.input("x", "batch hidden")
    g.block = "layers.0"
    up = g.op("up", "matmul", [x, g.weight("w1", "hidden ffn", "mxfp4")], "batch ffn", group="ffn")
    down = g.op("down", "matmul", [up, g.weight("w2", "ffn hidden", "fp8")], "batch hidden")
    return g.build(g.op("y", "add", [x, down], "batch hidden"))


def test_the_example_of_the_builder_runs() -> None:
    assert doctest.testmod(graph_module).attempted > 5
    assert doctest.testmod(graph_module).failed == 0


def test_tables() -> None:
    graph = mlp()
    assert graph.sizes == {"batch": 64, "hidden": 16, "ffn": 32}
    assert graph.words["ffn"] == "inner width"
    assert graph.words["batch"] == "batch"
    assert graph.outputs == ("y",)
    assert [t.name for t in graph.leaves] == ["x", "w1", "w2"]
    assert graph.producer["up"] is graph.op_by_name["up"]
    assert [(op.name, index) for op, index in graph.consumers["x"]] == [("up", 0), ("y", 0)]
    assert set(graph.tensors) == {"x", "w1", "w2", "up", "down", "y"}
    assert graph.op_by_name["up"].group == "ffn"
    assert graph.op_by_name["down"].group == "matmul"
    assert graph.op_by_name["down"].block == "layers.0"


def test_bytes_of_leaves_by_role() -> None:
    graph = mlp()
    assert graph.leaf_bytes(Role.WEIGHT) == 16 * 32 * (0.5 + 1 / 32) + 32 * 16
    assert graph.leaf_bytes(Role.INPUT, Role.WEIGHT) == graph.leaf_bytes(Role.WEIGHT) + 64 * 16 * 2
    assert graph.leaf_bytes(Role.KV_CACHE) == 0


def test_other_extents() -> None:
    small = mlp().resized(batch=2)
    assert small.sizes == {"batch": 2, "hidden": 16, "ffn": 32}
    assert small.words["ffn"] == "inner width"
    assert small.ops == mlp().ops
    with pytest.raises(UnknownNameError, match="did you mean batch"):
        small.resized(batches=3)


def test_the_hash_is_of_the_content() -> None:
    assert mlp().fingerprint == mlp().fingerprint
    assert mlp().fingerprint != mlp().resized(batch=65).fingerprint
    assert len(mlp().fingerprint) == 16


def test_networkx() -> None:
    found = mlp().to_networkx()
    assert networkx.is_directed_acyclic_graph(found)
    assert networkx.dag_longest_path_length(found) == 6  # x → up → up → down → down → y → y
    assert found.nodes[("op", "up")]["kind"] == "op"
    assert set(found.predecessors(("op", "y"))) == {("tensor", "x"), ("tensor", "down")}


def test_the_builder_refuses_contradictions() -> None:
    g = GraphBuilder("g", b=2)
    x = g.input("x", "b")
    assert g.input("x", "b") is not None
    with pytest.raises(GraphError, match="declared twice, differently"):
        g.weight("x", "b")
    with pytest.raises(GraphError, match="dim 'b' is 2 and 3"):
        g.dim("b", 3)
    g.op("y", "activation", [x], "b")
    with pytest.raises(GraphError, match="two writers"):
        g.op("y", "activation", [x], "b")


@pytest.mark.parametrize("size", [2.5, "64", True, None])
def test_a_size_is_a_whole_number(size: object) -> None:
    with pytest.raises(ValueRangeError, match="g: dim b"):
        GraphBuilder("g", b=size)  # type: ignore[arg-type]


def test_leaves_of_every_role() -> None:
    g = GraphBuilder("g", b=2)
    assert [t.role for t in (g.input("i", "b"), g.weight("w", "b"), g.cache("c", "b"), g.state("s", "b"))] == [
        Role.INPUT, Role.WEIGHT, Role.KV_CACHE, Role.STATE,
    ]  # fmt: skip


def test_without_outputs_what_nobody_reads_comes_out() -> None:
    g = GraphBuilder("g", b=2)
    x = g.input("x", "b")
    y = g.op("y", "activation", [x], "b")
    g.op("z", "activation", [y], "b")
    g.op("side", "activation", [y], "b")
    assert g.build().outputs == ("z", "side")
