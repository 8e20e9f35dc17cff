"""Bounds that need no simulation: never above it, close to it, and quick."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost.model import CostModel
from rooflang.errors import CapacityError, PlacementError
from rooflang.hw import Cluster, Mesh
from rooflang.ir import GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.ir.layout import make_mode, make_transfer
from rooflang.ir.op import signature
from rooflang.place.layout import Layout
from rooflang.place.lower import lower
from rooflang.place.plan import BlockPlan
from rooflang.search.api import simulate as simulate_model
from rooflang.search.api import simulate_layout
from rooflang.sim.result import Overlap
from rooflang.sim.simulate import simulate
from rooflang.sim.verdict import least_bytes, least_step_s, refuse_hopeless, verdict
from tests.counted import calls

from .plans import placed_model, random_layout

OVERLAPS: tuple[Overlap, ...] = ("none", "perfect", "two-batch")


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize("shape", [(8, 8, 1, 1), (8, 4, 2, 1), (16, 2, 4, 2), (16, 1, 1, 16)], ids=str)
def test_bounds_of_models_hold_and_are_close(shape: tuple[int, int, int, int], assumptions: Assumptions) -> None:
    gpus, dp, cp, pp = shape
    placed, cost = placed_model(gpus=gpus, dp=dp, cp=cp, pp=pp, assumptions=assumptions)
    for overlap in OVERLAPS:
        found = simulate(placed, cost, tokens=1, overlap=overlap)
        bound = verdict(placed.plan, placed.blocks, cost, overlap=overlap)
        assert 0.85 * found.step_s < float(bound.least_step_s) <= found.step_s
        assert 0.9 * found.peak_bytes < float(bound.least_bytes) <= found.peak_bytes + 1
        assert not bound.hopeless


def test_bounds_of_random_layouts_hold() -> None:
    checked = 0
    for seed in range(150):
        placed = random_layout(Random(seed), Cluster.of("b300", 8))
        if placed is None:
            continue
        graph, cost = placed
        for overlap in OVERLAPS:
            try:
                found = simulate(graph, cost, tokens=1, overlap=overlap)
            except PlacementError:
                continue
            bound = verdict(graph.plan, graph.blocks, cost, overlap=overlap)
            assert float(bound.least_step_s) <= found.step_s, f"seed {seed} {overlap}"
            assert float(bound.least_bytes) <= found.peak_bytes + 1, f"seed {seed} {overlap}"
            checked += 1
    assert checked > 150


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize("stages", [1, 2])
def test_what_a_block_is_handed_may_take_no_room(stages: int, assumptions: Assumptions) -> None:
    """In the paper's profile what is sent takes no room on the next stage, and what is gathered on the way out of a
    block only that of its shares."""
    g = GraphBuilder("handed", batch=64, hidden=4096)
    g.block = "layers.0"
    x = g.op("x", "rms_norm", [g.input("given", "batch hidden")], "batch hidden", over="hidden")
    g.block = "layers.1"
    graph, cluster = g.build(g.op("y", "to_hbm", [x], "batch hidden", "fp32")), Cluster.of("b300", 4)
    blocks, mesh = split_blocks(graph), Mesh.lay(cluster, (4 // stages,), stages=stages)
    plan = Layout(graph=graph, cluster=cluster, mesh=mesh).plan()
    if stages == 1:
        norm = graph.op_by_name["x"]
        rows = make_mode(norm, [cut for cut in signature(norm) if cut.dim == "batch"])
        gathered = BlockPlan(modes={"x": rows}, exits={"x": (make_transfer("x", ("batch",), ("R",)),)})
        plan = replace(plan, blocks={**plan.blocks, "layers.0": gathered})
    plan = replace(plan, stages=(blocks.sequence,) if stages == 1 else tuple((label,) for label in blocks.sequence))
    cost = CostModel.of(graph, cluster, mesh, assumptions)
    found = simulate(lower(plan, blocks), cost, tokens=1, overlap="none")
    assert float(least_bytes(plan, blocks, cost)) <= found.peak_bytes


def test_many_batch_sizes_at_once_are_as_one_by_one() -> None:
    placed, cost = placed_model(gpus=16, dp=4, cp=2, pp=2)
    sizes = np.array([8.0 * 2**k for k in range(10)])
    many = verdict(placed.plan, placed.blocks, replace(cost, sizes={**cost.sizes, "batch": sizes}))
    for index, size in enumerate(sizes):
        one = verdict(placed.plan, placed.blocks, replace(cost, sizes={**cost.sizes, "batch": int(size)}))
        assert many.least_bytes[index] == pytest.approx(float(one.least_bytes), rel=1e-12)
        assert many.least_step_s[index] == pytest.approx(float(one.least_step_s), rel=1e-12)


def test_what_does_not_divide_is_hopeless() -> None:
    placed, cost = placed_model(dp=8, batch=64)
    sizes = np.array([64.0, 65.0, 4.0, 1e9])
    many = verdict(placed.plan, placed.blocks, replace(cost, sizes={**cost.sizes, "batch": sizes}))
    assert many.hopeless.tolist() == [False, True, True, True]
    assert np.isinf(many.least_step_s).tolist() == [False, True, True, False]


def test_a_hopeless_plan_is_refused_with_its_largest_tensors() -> None:
    placed, cost = placed_model(batch=65536)
    with pytest.raises(CapacityError, match=r"HBM of stage 0 needs at least .* TB of 288 GB.*_cache \("):
        refuse_hopeless(placed.plan, placed.blocks, cost)
    with pytest.raises(CapacityError, match="at least"):
        simulate(placed, cost, tokens=1)
    assert not simulate(placed, cost, tokens=1, check_memory=False).fits


def test_a_hopeless_plan_without_residents_names_what_its_largest_operator_works_on() -> None:
    g = GraphBuilder("long rows", batch=8, n=13_000_000_000)
    g.block = "only"
    x = g.input("x", "batch n")
    graph = g.build(g.op("y", "activation", [g.op("thin", "activation", [x], "batch n", "fp8")], "batch n"))
    with pytest.raises(CapacityError, match=r"0 B of them for good; the largest are x \(208 GB\), thin \(104 GB\)"):
        simulate_layout(Layout.start(graph, Cluster.of("b300", 2), mesh=[2]))


def test_a_plan_that_overflows_in_passing_only_is_left_to_the_simulation() -> None:
    placed, cost = placed_model(batch=4096)
    found = simulate(placed, cost, tokens=1)
    least = float(least_bytes(placed.plan, placed.blocks, cost))
    device = replace(cost.cluster.device, hbm_bytes=(least + found.peak_bytes) / 2)
    tight = replace(cost, cluster=replace(cost.cluster, device=device, digest="tight"))
    if least < found.peak_bytes:
        refuse_hopeless(placed.plan, placed.blocks, tight)
        with pytest.raises(CapacityError, match="overflows at"):
            simulate(placed, tight, tokens=1)


def test_an_infeasible_configuration_is_refused_after_few_calls() -> None:
    """From the model's name to the refusal, after the modules are loaded: no simulation."""

    def refused() -> None:
        with pytest.raises(CapacityError):
            simulate_model("deepseek-v4-flash", hardware="gb300", gpus=64, context=65536, batch=2**22, dp=64)

    refused()
    assert calls(refused) < 300_000


def test_the_bounds_take_few_calls() -> None:
    """Milliseconds: a few calls for each kernel of a kind of layer, however many layers and devices there are."""
    placed, cost = placed_model("deepseek-v4-pro", gpus=256, dp=16, pp=16, batch=4096)
    assert calls(lambda: least_bytes(placed.plan, placed.blocks, cost)) < 40_000
    assert calls(lambda: least_step_s(placed.plan, placed.blocks, cost)) < 40_000
