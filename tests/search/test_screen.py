"""Screening of many batch sizes at once against screening each alone; what it adds up."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.ir.tensor import Role
from rooflang.place.grid import grid_plan
from rooflang.place.lower import PlacedGraph, lower
from rooflang.search.problem import Problem
from rooflang.search.screen import screen
from rooflang.sim.simulate import simulate

from .toys import perceptron, small_flash, stencil

BATCHES = np.array([1.0, 8.0, 12.0, 64.0, 4096.0])


def placed(problem: Problem, dp: int, cp: int, pp: int) -> PlacedGraph:
    graph = problem.graph.resized(batch=dp * cp) if problem.has_batch else problem.graph
    return lower(grid_plan(graph, problem.cluster, dp=dp, cp=cp, pp=pp), problem.blocks)


@pytest.mark.parametrize("assumptions", ["paper", "physical"])
@pytest.mark.parametrize("shape", [(8, 1, 1), (2, 4, 1), (4, 1, 2)], ids=str)
def test_many_batch_sizes_screen_as_each_does(assumptions: str, shape: tuple[int, int, int]) -> None:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, context=4096, assumptions=assumptions)
    graph = placed(problem, *shape)
    mesh = graph.plan.mesh
    for overlap in ("perfect", "none"):
        many = screen(graph, problem.cost(mesh, BATCHES), overlap)  # type: ignore[arg-type]
        assert many.step_s.shape == many.least_bytes.shape == BATCHES.shape
        for index, batch in enumerate(BATCHES):
            one = screen(graph, problem.cost(mesh, float(batch)), overlap)  # type: ignore[arg-type]
            if np.isfinite(one.step_s):
                assert many.step_s[index] == pytest.approx(float(one.step_s), rel=1e-12)
                assert many.least_bytes[index] == pytest.approx(float(one.least_bytes), rel=1e-12)
            else:
                assert np.isinf(many.step_s[index])
        assert np.isfinite(many.step_s).tolist() == [batch % (shape[0] * shape[1]) == 0 for batch in BATCHES]


def test_without_overlap_c_and_n_add_up() -> None:
    problem = Problem.of("deepseek-v4-flash", hardware="gb300", gpus=64, context=65536)
    graph = placed(problem, 8, 8, 1)
    cost = problem.cost(graph.plan.mesh, 4096)
    none, perfect = screen(graph, cost, "none"), screen(graph, cost, "perfect")
    stage = simulate(graph, cost, tokens=1, overlap="none").stages[0]
    assert float(none.step_s) == pytest.approx(stage.local_s + stage.exposed_s, rel=1e-9)
    assert float(perfect.step_s) == pytest.approx(max(stage.local_s, stage.exposed_s), rel=1e-9)
    assert float(none.least_bytes) == float(perfect.least_bytes)


def test_in_a_pipeline_the_slowest_and_the_fullest_stage_count() -> None:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, context=65536)
    graph = placed(problem, 2, 1, 4)
    cost = problem.cost(graph.plan.mesh, 64)
    found, result = screen(graph, cost, "none"), simulate(graph, cost, tokens=1, overlap="none")
    assert float(found.step_s) == pytest.approx(max(s.local_s + s.exposed_s for s in result.stages), rel=1e-9)
    fullest = []
    for stage in range(4):
        residents = [r for r in graph.residents if r.stage == stage]
        assert residents
        waves = {Role.KV_CACHE: 4, Role.STATE: 4}
        fullest.append(sum(float(cost.bytes(r.tensor, r.spec)) * waves.get(r.tensor.role, 1) for r in residents))
    assert max(fullest) < float(found.least_bytes) < 1.1 * max(fullest)


def test_a_graph_without_a_batch_has_one_time() -> None:
    problem = Problem.of(stencil(), hardware="b300", gpus=1)
    graph = placed(problem, 1, 1, 1)
    found = screen(graph, problem.cost(graph.plan.mesh, None), "perfect")
    assert found.step_s.shape == ()
    assert float(found.step_s) == pytest.approx(
        simulate(graph, problem.cost(graph.plan.mesh, None), tokens=1).step_s, rel=1e-9
    )


def test_the_least_memory_is_residents_and_the_largest_operator() -> None:
    problem = Problem.of(perceptron(), hardware="b300", gpus=8)
    graph = placed(problem, 8, 1, 1)
    found = screen(graph, problem.cost(graph.plan.mesh, 64), "none")
    weights = 2 * 2 * 1024 * 4096
    hidden, ffn = 2 * 8 * 1024, 2 * 8 * 4096
    assert float(found.least_bytes) == weights + max(hidden + ffn, ffn + ffn)
