"""The closed form against the engine: drawn layouts, models, pipelines, all sorts of clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost.model import CostModel
from rooflang.hw import Cluster
from rooflang.place.grid import layer_labels, partition
from rooflang.place.lower import PlacedGraph, lower
from rooflang.sim.result import Overlap
from rooflang.sim.serial import Serial, Steps
from rooflang.sim.simulate import simulate

from .plans import Placed, placed_model, random_layout

OVERLAPS: tuple[Overlap, ...] = ("perfect", "none")


def serial_steps(placed: PlacedGraph, cost: CostModel, overlap: Overlap) -> Steps | None:
    return Serial(placed.blocks, cost, overlap).steps(placed.plan)


def check(placed: Placed, batches: list[int], overlap: Overlap) -> bool:
    """Compare at every batch size; is the closed form used at all?"""
    graph, cost = placed
    found = serial_steps(graph, replace(cost, sizes={**cost.sizes, "batch": np.array(batches, np.float64)}), overlap)
    if found is None:
        return False
    for at, batch in enumerate(batches):
        one = replace(cost, sizes={**cost.sizes, "batch": batch})
        if np.isinf(found.step_s[at]):
            continue
        engine = simulate(graph, one, tokens=1, overlap=overlap, check_memory=False)
        assert found.step_s[at] == pytest.approx(engine.step_s, rel=1e-11, abs=0.0)
        assert found.peak_bytes[at] == engine.peak_bytes
        assert bool(found.fits[at]) is engine.fits
    return True


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_drawn_layouts_agree_with_the_engine(overlap: Overlap) -> None:
    rng, used = Random(7), 0
    for _ in range(60):
        placed = random_layout(rng, Cluster.of("b300", rng.choice([4, 8, 16])))
        if placed is not None:
            used += check(placed, [64, 128, 4096], overlap)
    assert used > 10


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=["physical", "paper"])
@pytest.mark.parametrize(
    ("model", "hardware", "stage", "pp", "cp"),
    [
        ("deepseek-v4-pro", "gb300", "decode", 1, 2),
        ("deepseek-v4-flash", "b300", "decode", 4, 1),
        ("kimi-k3", "gb300", "decode", 1, 1),
        ("glm-5.3", "gb300", "prefill", 1, 1),
    ],
)
def test_models_agree_with_the_engine(
    model: str, hardware: str, stage: str, pp: int, cp: int, assumptions: Assumptions
) -> None:
    dp = 16 // cp // pp
    placed = placed_model(
        model, hardware=hardware, gpus=16, stage=stage, dp=dp, cp=cp, pp=pp, batch=dp * cp, assumptions=assumptions
    )
    assert check(placed, [16, 1024], "perfect")


@pytest.mark.parametrize(
    ("model", "stage", "pp"),
    [("deepseek-v4-flash", "decode", 2), ("kimi-k3", "decode", 4), ("glm-5.3", "decode", 4), ("glm-5.3", "prefill", 2)],
)
def test_one_closed_form_serves_several_partitions(model: str, stage: str, pp: int) -> None:
    """What is kept of the blocks of one plan holds for the next, whose layers are cut otherwise, unevenly too. A stage
    of GLM-5.3 begins with one of two values that it is sent, one of Kimi K3 slices one after the other."""
    graph, cost = placed_model(model, hardware="gb300", gpus=16, stage=stage, dp=16 // pp, pp=pp, batch=8)
    batches = [8, 64]
    serial = Serial(
        graph.blocks, replace(cost, sizes={**cost.sizes, "batch": np.array(batches, np.float64)}), "perfect"
    )
    layers = len(layer_labels(graph.blocks))
    for cuts in ([layers // pp * n for n in range(1, pp)], range(3, 3 + pp - 1), range(layers - pp + 1, layers)):
        counts = [end - begin for begin, end in pairwise([0, *cuts, layers])]
        plan = replace(graph.plan, stages=partition(graph.blocks, counts))
        found = serial.steps(plan)
        assert found is not None
        engine = simulate(lower(plan, graph.blocks), replace(cost, sizes={**cost.sizes, "batch": batches[1]}),
                          tokens=1, overlap="perfect", check_memory=False)  # fmt: skip
        assert found.step_s[1] == pytest.approx(engine.step_s, rel=1e-11, abs=0.0)
        assert found.at([1]).peak_bytes.tolist() == [engine.peak_bytes]
        assert bool(found.fits[1]) is engine.fits


def test_the_fullest_memory_is_told_from_the_others() -> None:
    """Whether it fits is said at each batch size by itself."""
    graph, cost = placed_model(gpus=8, dp=8)
    batches = np.array([8.0, 64.0, 2.0**20])
    found = serial_steps(graph, replace(cost, sizes={**cost.sizes, "batch": batches}), "perfect")
    assert found is not None
    assert found.fits.tolist() == [True, True, False]
    assert found.peak_bytes[2] > cost.cluster.device.hbm_bytes


def test_what_runs_on_two_streams_is_left_to_the_engine() -> None:
    graph, cost = placed_model(gpus=8, dp=8)
    streams = replace(graph, plan=replace(graph.plan, streams={graph.ops[0].name: 1}))
    assert serial_steps(streams, cost, "perfect") is None
    assert serial_steps(graph, cost, "two-batch") is None
    controlled = replace(graph, plan=replace(graph.plan, control=((graph.ops[0].name, graph.ops[-1].name),)))
    assert serial_steps(controlled, cost, "perfect") is None
