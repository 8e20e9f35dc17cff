"""Graphs that are no transformers, through the doors that users have: with and without a batch, layers, and GPUs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rooflang.errors import PlacementError, RooflangError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.graph import GraphBuilder
from rooflang.ir.text import dump
from rooflang.place.certificate import replay
from rooflang.place.layout import Layout
from rooflang.search.api import optimize, simulate, simulate_layout
from rooflang.search.problem import Problem

from .toys import perceptron, stencil

#: One B300: FLOP/s in BF16 and at the FP32 (TF32) rate, bytes/s.
BF16, FP32, HBM = 2250e12, 1125e12, 7750e9


def test_a_field_without_a_batch_on_one_gpu() -> None:
    point = simulate(stencil(2), hardware="b300", gpus=1)
    product = max(2 * 512**3 / FP32, 3 * 4 * 512**2 / HBM)
    assert point.sim.step_s == pytest.approx(2 * (4 * product + 3 * 4 * 512**2 / HBM), rel=1e-9)
    assert (point.batch, point.pp, point.mesh, point.pp_partition) == (1, 1, (), (1,))
    # A step is one token: a graph without requests counts steps.
    assert point.sim.tok_s_user == pytest.approx(1 / point.sim.step_s)
    assert point.sim.tok_s_gpu == point.sim.tok_s_user
    # Four matrices; and at most three fields at once.
    assert point.sim.peak_bytes == 4 * 4 * 512**2 + 3 * 4 * 512**2
    assert point.plan.endswith("pipeline 1")


def test_layers_without_a_batch_make_a_pipeline() -> None:
    one = simulate(stencil(2, blocks=True), hardware="b300", gpus=1)
    two = simulate(stencil(2, blocks=True), hardware="b300", gpus=2, pp=2)
    assert two.pp_partition == (1, 1)
    assert two.sim.step_s < one.sim.step_s
    assert two.sim.tok_s_user == pytest.approx(1 / (2 * two.sim.step_s))
    assert two.sim.tok_s_gpu == pytest.approx(1 / (2 * two.sim.step_s))


def test_a_batch_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueRangeError, match="no dim 'batch'"):
        simulate(stencil(), hardware="b300", gpus=1, batch=8)
    with pytest.raises(ValueRangeError, match="no dim 'batch'"):
        optimize(stencil(), hardware="b300", gpus=1, batch=[8], search="grid")
    with pytest.raises(PlacementError, match="stencil has no dim 'batch' to divide over 8 ranks"):
        simulate(stencil(), hardware="b300", gpus=8, dp=8)


def test_a_graph_keeps_the_batch_it_is_written_with() -> None:
    own = simulate(perceptron(), hardware="b300", gpus=8, dp=8)
    assert own.batch == 64
    assert own.sim == simulate(perceptron(), hardware="b300", gpus=8, dp=8, batch=64).sim
    assert simulate(perceptron(), hardware="b300", gpus=8, dp=8, batch=128).batch == 128
    assert own.sim.tok_s_gpu == pytest.approx(64 / own.sim.step_s / 8)


def test_a_graph_file_is_the_graph(tmp_path: Path) -> None:
    for graph, gpus, dp in ((perceptron(), 8, 8), (stencil(), 1, 1)):
        path = tmp_path / f"{graph.name}.rl"
        path.write_text(dump(graph), encoding="utf-8")
        given, read = (simulate(each, hardware="b300", gpus=gpus, dp=dp) for each in (graph, path))
        assert given == read


@pytest.mark.parametrize("search", ["grid", "egraph"])
def test_one_gpu_leaves_nothing_to_choose(search: str) -> None:
    alone = simulate(stencil(), hardware="b300", gpus=1)
    found = optimize(stencil(), hardware="b300", gpus=1, search=search)  # type: ignore[arg-type]
    (point,) = found.frontier
    # What is left is to fuse the sum into the product before it: it is not read and written on the way.
    saved = 2 * 2 * 4 * 512**2 / HBM if search == "egraph" else 0.0
    assert point.sim.step_s == pytest.approx(alone.sim.step_s - saved, rel=1e-9)


def test_the_e_graph_cuts_what_the_grid_cannot() -> None:
    """Without requests the grid is at a loss on eight GPUs; the search cuts rows and columns."""
    graph = stencil(size=8192)
    with pytest.raises(RooflangError, match="no configuration runs"):
        optimize(graph, hardware="b300", gpus=8, search="grid")
    found = optimize(graph, hardware="b300", gpus=8, search="egraph")
    one = simulate(graph, hardware="b300", gpus=1)
    best = max(found.frontier, key=lambda p: p.sim.tok_s_user)
    assert best.sim.step_s < 0.25 * one.sim.step_s
    problem = Problem.of(graph, hardware="b300", gpus=8)
    assert replay(best.certificate, problem.blocks, problem.cluster).mesh.gpus == 8


@pytest.mark.parametrize("pp", [1, 2])
def test_blocks_that_hand_over_copies(pp: int) -> None:
    """What a layer hands over is a copy, and the head reads a copy of one: all of them are removed."""
    g = GraphBuilder("copies", batch=64, hidden=1024)
    x = g.input("x", "batch hidden")
    for layer in range(2):
        g.block = f"layers.{layer}"
        y = g.op(f"y{layer}", "activation", [x], "batch hidden")
        x = g.op(f"copy{layer}", "to_hbm", [y], "batch hidden")
    g.block = "head"
    again = g.op("again", "to_hbm", [x], "batch hidden")
    graph = g.build(g.op("z", "activation", [again], "batch hidden"), again)
    found = optimize(graph, hardware="b300", gpus=2, batch=[64], pp=pp)
    (point,) = found.frontier
    assert "copy" not in json.dumps([k["kernels"] for k in point.certificate["kinds"]])
    # Of three activations each reads and writes 64 × 1,024 numbers: a GPU has half of each, or whole ones and a send.
    one = 2 * 2 * 64 * 1024 / HBM
    assert point.pp == pp
    assert point.sim.step_s == pytest.approx(1.5 * one) if pp == 1 else point.sim.step_s > 2 * one


def test_a_layout_by_hand() -> None:
    """The field by its rows: the first mixing needs no exchange, the second one sums over them."""
    cluster = Cluster.of("b300", 8)
    layout = Layout.start(stencil(1), cluster, [8])
    whole = simulate_layout(layout, overlap="none")
    assert whole.sim.step_s == pytest.approx(simulate(stencil(1), hardware="b300", gpus=1).sim.step_s)
    halved = layout.split_kernel("across0", "row").split_kernel("down0", "row")
    point = simulate_layout(halved, overlap="none")
    assert point.sim.step_s != whole.sim.step_s
    assert [name for name in point.sim.groups_s if name == "collectives"] == ["collectives"]
    assert point.origin == "layout"
    # Every rank reads the whole matrix that mixes along rows, and an eighth of the one that sums over them.
    assert point.sim.peak_bytes < whole.sim.peak_bytes
