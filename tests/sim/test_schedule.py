"""Two-batch overlap: what halves, how the halves alternate, and what it brings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflang.assumptions import PHYSICAL
from rooflang.cost.model import CostModel
from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir import GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.place.layout import Layout
from rooflang.place.lower import lower
from rooflang.sim.book import Book
from rooflang.sim.build import build
from rooflang.sim.engine import run
from rooflang.sim.schedule import KERNELS, NETWORK, split_batch, two_batches
from rooflang.sim.simulate import simulate

from .plans import placed_model


def test_only_the_batch_is_divided() -> None:
    _, cost = placed_model(batch=64)
    half = split_batch(cost, 2)
    assert {k for k in cost.sizes if cost.sizes[k] != half.sizes[k]} == {"batch"}
    assert half.sizes["batch"] == 32


def test_a_batch_that_does_not_divide_is_refused() -> None:
    _, cost = placed_model(batch=64)
    with pytest.raises(PlacementError, match="65 does not split into 2"):
        split_batch(replace(cost, sizes={**cost.sizes, "batch": 65}), 2)
    with pytest.raises(PlacementError, match="no batch"):
        split_batch(replace(cost, sizes={"hidden": 4}), 2)


def test_halves_that_do_not_divide_over_the_mesh_are_refused() -> None:
    placed, cost = placed_model(batch=8, dp=8)
    simulate(placed, cost, tokens=1)
    with pytest.raises(PlacementError, match="do not divide"):
        simulate(placed, cost, tokens=1, overlap="two-batch")


def test_runs_of_the_halves_alternate_and_each_stream_is_in_order() -> None:
    placed, cost = placed_model(batch=64)
    issues = two_batches(placed, Book(placed, [split_batch(cost, 2)]))
    for wave in (0, 1):
        assert [op for w, op, _ in issues if w == wave] == list(placed.ops)
    for stream in (KERNELS, NETWORK):
        turns = [wave for wave, _, where in issues if where == (0, stream)]
        changes = np.flatnonzero(np.diff(turns)) + 1
        assert len(changes) > 50
        runs = np.split(np.array(turns), changes)
        assert [run[0] for run in runs] == [i % 2 for i in range(len(runs))]


def test_what_follows_on_the_network_belongs_to_one_run() -> None:
    g = GraphBuilder("two", batch=64, hidden=4096)
    y = g.op("y", "activation", [g.input("x", "batch hidden")], "batch hidden")
    graph, cluster = g.build(g.op("z", "activation", [y], "batch hidden")), Cluster.of("b300", 4)
    layout = Layout.start(graph, cluster, [2, 2]).split_kernel("y", "batch").split_kernel("y", "hidden", axis="y")
    placed = lower(layout.plan(), split_blocks(graph))
    cost = CostModel.of(graph, cluster, layout.mesh, PHYSICAL)
    issues = two_batches(placed, Book(placed, [split_batch(cost, 2)]))
    assert len([op for op in placed.ops if op.kind == "transfer"]) == 2
    assert [wave for wave, _, where in issues if where == (0, NETWORK)] == [0, 0, 1, 1]


def test_one_half_computes_while_the_other_is_on_the_network() -> None:
    """On a large batch the two streams hide most of what can be hidden, and no more than perfect overlap would."""
    placed, cost = placed_model(hardware="gb300", gpus=64, dp=64, batch=65536)
    none, perfect, halves = (
        simulate(placed, cost, tokens=1, overlap=overlap) for overlap in ("none", "perfect", "two-batch")
    )
    assert perfect.step_s < halves.step_s < none.step_s
    assert none.step_s - halves.step_s > 0.7 * (none.step_s - perfect.step_s)
    built = build(placed, cost, overlap="two-batch")
    timeline = run(built.program)
    assert timeline.makespan_s == halves.step_s


def test_what_is_read_twice_is_paid_twice() -> None:
    """At a small batch the weights are most of the traffic, and both halves read them: the schedule loses."""
    placed, cost = placed_model(batch=64)
    none, halves = (simulate(placed, cost, tokens=1, overlap=overlap) for overlap in ("none", "two-batch"))
    assert halves.step_s > none.step_s


def test_the_halves_hold_the_caches_of_the_whole() -> None:
    placed, cost = placed_model(batch=4096)
    none, halves = (simulate(placed, cost, tokens=1, overlap=overlap) for overlap in ("none", "two-batch"))
    resident = [
        sum(size for _, _, size in build(placed, cost, overlap=o).program.residents) for o in ("none", "two-batch")
    ]
    assert resident[0] == pytest.approx(resident[1], rel=1e-9)
    assert halves.peak_bytes == pytest.approx(none.peak_bytes, rel=0.05)
