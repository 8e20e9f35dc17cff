"""Two-batch overlap: its lower bound against the engine, and searches in that mode."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.errors import PlacementError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.search.api import optimize
from rooflang.search.part import Part, Way
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.screen import screen
from rooflang.sim.simulate import simulate
from tests.sim.plans import random_layout

from .toys import perceptron, small_flash, stencil

#: Sums in another order differ by rounding.
UP = 1 + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["b300", "h200"]))
def test_two_halves_take_at_least_what_either_stream_has_work_for(seed: int, hardware: str) -> None:
    found = random_layout(Random(seed), Cluster.of(hardware, 8))
    if found is None:
        return
    placed, cost = found
    try:
        sim = simulate(placed, cost, tokens=1, overlap="two-batch")
    except PlacementError:
        return
    least = screen(placed, cost, "two-batch")
    assert float(least.step_s) <= sim.step_s * UP
    assert float(least.least_bytes) <= sim.peak_bytes + 1


@pytest.mark.parametrize(
    ("model", "gpus", "stages", "context"), [(perceptron(), 4, 1, 0), (small_flash(), 8, 2, 8192)], ids=["mlp", "flash"]
)
def test_no_plan_known_is_faster_than_its_objective_twice(
    model: Graph | Model, gpus: int, stages: int, context: int
) -> None:
    problem = Problem.of(model, hardware="gb300", gpus=gpus, context=context)
    part = Part.of(Way(problem=problem, batches=(16, 256), overlap="two-batch"), stages, Progress())
    checked = 0
    for config in part.found:
        for at in range(2):
            for _, value_s, plan in config.rivals(at):
                steps = part._steps(plan, [at])
                assert part.bounds_s[at] <= 2 * value_s * UP
                if steps.fits[0] and np.isfinite(steps.step_s[0]):
                    assert 2 * value_s <= steps.step_s[0] * UP
                    checked += 1
    assert checked >= 4


@pytest.mark.parametrize("effort", ["look", "full"])
def test_a_search_has_points_with_bounds(effort: Any) -> None:
    result = optimize(perceptron(), hardware="b300", gpus=4, batch=[64, 65, 512], overlap="two-batch", effort=effort)
    assert {point.batch for point in result.points} == {64, 512}
    assert result.notes == ("no plan at batch 65 (too large, or nothing divides)",)
    for point in result.points:
        assert point.sim.overlap == "two-batch" and "two-batch overlap" in point.bound_scope
        assert point.bound_s is not None and point.bound_s <= point.sim.step_s
    assert all(point.certificate["evaluated"]["verdict"] == "equal" for point in result.frontier)


def test_memory_holds_the_caches_of_both_halves() -> None:
    whole, half = (
        optimize(small_flash(), hardware="b300", gpus=8, context=65536, batch=[4096], pp=1, overlap=mode, effort="look")
        for mode in ("none", "two-batch")
    )
    assert half.points[0].sim.peak_bytes == pytest.approx(whole.points[0].sim.peak_bytes, rel=0.2)


def test_what_cannot_be_halved_is_refused() -> None:
    for model, batch in ((perceptron(), [7]), (stencil(), None)):
        for search in ("egraph", "grid"):
            with pytest.raises(ValueRangeError, match="no batch can be halved"):
                optimize(model, hardware="b300", gpus=1, batch=batch, overlap="two-batch", search=search)  # type: ignore[arg-type]


def test_between_two_batch_sizes_only_even_ones_are_tried() -> None:
    given: dict[str, Any] = {"hardware": "b300", "gpus": 2, "overlap": "two-batch", "objective": "throughput"}
    least = max(p.sim.tok_s_user for p in optimize(perceptron(), **{**given, "batch": [4]}).points)
    (best,) = optimize(perceptron(), **given, min_user=least * (1 - 1e-9)).frontier
    assert best.batch >= 4 and best.batch % 2 == 0
