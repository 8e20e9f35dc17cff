"""Extents that do not divide: whole elements for every rank, charged for what it holds, never truncated."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from rooflang.assumptions import PHYSICAL
from rooflang.cost.model import CostModel
from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir import GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.ir.shards import shard_sizes
from rooflang.place.layout import Layout
from rooflang.place.lower import lower
from rooflang.sim.build import build
from rooflang.sim.fleet import DeviceOverride
from rooflang.sim.simulate import simulate
from rooflang.sim.uneven import on_rank, uneven_extents

from .plans import Placed, placed_model, random_layout


def resized(placed: Placed, **sizes: int) -> Placed:
    graph, cost = placed
    return graph, replace(cost, sizes={**cost.sizes, **sizes})


def test_what_divides_stays_as_it_is() -> None:
    placed, cost = placed_model(gpus=8, dp=4, cp=2)
    assert uneven_extents(placed, cost) == [()] * 8
    assert on_rank(cost, ()) is cost
    assert simulate(placed, cost, tokens=1, uneven=True) == simulate(placed, cost, tokens=1)


def test_ranks_hold_whole_requests_and_all_of_them() -> None:
    placed, cost = resized(placed_model(gpus=8, dp=8), batch=61)
    held = [dict(extents)["batch", (0,)] for extents in uneven_extents(placed, cost)]
    assert tuple(held) == shard_sizes(61, [8]) and sum(held) == 61
    with pytest.raises(PlacementError, match="do not divide"):
        simulate(placed, cost, tokens=1)


def test_an_uneven_batch_costs_its_largest_shard() -> None:
    """61 requests on 8 ranks are 8 on seven and 5 on the last: the seven take as long as with 64."""
    even, odd = (resized(placed_model(gpus=8, dp=8), batch=batch) for batch in (64, 61))
    one, other = simulate(*even, tokens=1, overlap="none"), simulate(*odd, tokens=1, overlap="none", uneven=True)
    assert other.step_s == pytest.approx(one.step_s, rel=2e-2)
    assert other.tok_s_gpu == pytest.approx(61 / (other.step_s * 8))
    assert other.peak_bytes == pytest.approx(one.peak_bytes, rel=1e-3)
    assert sorted(build(*odd, uneven=True).ranks.count) == [1, 7]


def test_flops_are_not_lost() -> None:
    """The sum over ranks of a product's FLOPs is that of the whole, at any size."""
    for batch in (61, 63, 57, 8, 5):
        placed, cost = resized(placed_model(gpus=8, dp=8), batch=batch)
        models = [on_rank(cost, extents) for extents in uneven_extents(placed, cost)]
        mode = next(op.mode for op in placed.ops if op.name == "layers.3.q_a" and op.mode)
        whole = 2.0 * batch * 4096 * 1024
        assert sum(float(model.flops(mode)["fp8"]) for model in models) == pytest.approx(whole, rel=1e-12)


def test_shards_that_would_tear_a_quantisation_block_are_uneven() -> None:
    """Three blocks of 128 over two ranks are two and one, though 384 divides."""
    g = GraphBuilder("blocks", batch=4, blocks=384, wide=256)
    x, w = g.input("x", "batch blocks"), g.weight("w", "blocks wide", "fp8")
    graph, cluster = g.build(g.op("y", "block_matmul", [x, w], "batch wide")), Cluster.of("b300", 2)
    layout = Layout.start(graph, cluster, [2]).split_kernel("y", "blocks")
    placed = lower(layout.plan(), split_blocks(graph))
    cost = CostModel.of(graph, cluster, layout.mesh, PHYSICAL)
    held = [dict(extents)["blocks", (0,)] for extents in uneven_extents(placed, cost)]
    assert held == [256, 128]
    with pytest.raises(PlacementError, match="do not divide"):
        simulate(placed, cost, tokens=1)


def test_an_empty_shard_does_nothing() -> None:
    placed, cost = resized(placed_model(gpus=8, dp=8), batch=5)
    found = build(placed, cost, uneven=True)
    idle = next(c for c in range(len(found.ranks.stage)) if found.ranks.representative[c] == 5)
    local = [sum(max(cost.compute_s, cost.memory_s) for _, cost in work) for work in found.work]
    assert local[idle] < 0.9 * max(local)
    assert simulate(placed, cost, tokens=1, uneven=True).step_s > 0


def test_uneven_experts_slow_the_ranks_that_have_more() -> None:
    graph, cost = placed_model(gpus=8, dp=8, batch=4096)
    even, odd = (simulate(*resized((graph, cost), expert=n), tokens=1, overlap="none", uneven=True) for n in (256, 257))
    assert odd.step_s > even.step_s


@pytest.mark.parametrize("overlap", ["none", "two-batch"])
def test_every_rank_by_itself_holds_the_same(overlap: str) -> None:
    odd = resized(placed_model(gpus=16, dp=4, cp=2, pp=2), batch=62)
    slow = [DeviceOverride(gpus=(3,), hbm=0.7)]
    few, every = (
        simulate(*odd, tokens=1, overlap=overlap, overrides=slow, uneven=True, explicit=explicit)  # type: ignore[arg-type]
        for explicit in (False, True)
    )
    assert replace(few, events=0, operators=0) == replace(every, events=0, operators=0)


def test_random_layouts_of_odd_sizes_by_class_and_by_rank() -> None:
    found = 0
    for seed in range(120):
        rng = Random(seed)
        placed = random_layout(rng, Cluster.of("b300", rng.choice([4, 8])))
        if placed is None:
            continue
        graph, cost = placed
        odd: CostModel = replace(
            cost, sizes={**cost.sizes, rng.choice(["batch", "hidden", "ffn"]): rng.randint(5, 700)}
        )
        few, every = (simulate(graph, odd, tokens=1, uneven=True, explicit=explicit) for explicit in (False, True))
        assert replace(few, events=0, operators=0) == replace(every, events=0, operators=0), f"seed {seed}"
        found += 1
    assert found > 50


def test_dims_whose_shards_follow_anothers_are_refused() -> None:
    placed, cost = placed_model(gpus=8, dp=4, cp=2)
    label = next(label for label in cost.sizes if label.startswith("ctx"))
    with pytest.raises(PlacementError, match="shards follow another dim's"):
        simulate(placed, replace(cost, sizes={**cost.sizes, label: 1025}), tokens=1, uneven=True)


def test_a_cut_along_some_axes_holds_the_shards_of_all_others() -> None:
    placed, cost = resized(placed_model(gpus=8, dp=4, cp=2, batch=64), batch=61)
    shards = shard_sizes(61, [4, 2])
    for rank, extents in enumerate(uneven_extents(placed, cost)):
        held = {axes: size for (label, axes), size in extents if label == "batch"}
        assert held[0, 1] == shards[rank]
        assert held[(0,)] == shards[rank // 2 * 2] + shards[rank // 2 * 2 + 1]
