"""From a plan to a point."""

from __future__ import annotations

import pytest

from rooflang.errors import CapacityError, PlacementError
from rooflang.place.grid import grid_plan
from rooflang.place.plan import Plan
from rooflang.place.words import describe
from rooflang.search.evaluate import evaluate
from rooflang.search.problem import Problem

from .toys import small_flash

PROBLEM = Problem.of(small_flash(), hardware="b300", gpus=8, context=65536)


def plan(dp: int, cp: int, pp: int, batch: int = 8) -> Plan:
    return grid_plan(PROBLEM.graph.resized(batch=batch), PROBLEM.cluster, dp=dp, cp=cp, pp=pp)


def test_a_point_says_what_its_plan_is() -> None:
    given = plan(2, 2, 2)
    point = evaluate(PROBLEM, given, 64, overlap="none", bound_s=1e-6, bound_scope="a guess")
    assert (point.batch, point.pp, point.mesh, point.pp_partition) == (64, 2, (2, 2), (3, 3))
    assert point.plan == describe(given, PROBLEM.blocks)
    assert point.certificate["graph"] == PROBLEM.graph.fingerprint
    assert (point.origin, point.bound_s, point.bound_scope) == ("grid dp2 cp2 ep4 pp2", 1e-6, "a guess")
    assert point.sim.overlap == "none"
    assert point.sim.tok_s_gpu == pytest.approx(64 / point.sim.step_s / 8)
    assert point.sim.tok_s_user == pytest.approx(1 / point.sim.step_s / 2)
    assert point.gap == pytest.approx(point.sim.step_s / 1e-6 - 1)


def test_prompts_count_their_tokens() -> None:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, stage="prefill", context=4096)
    given = grid_plan(problem.graph.resized(batch=8), problem.cluster, dp=8, cp=1, pp=1)
    point = evaluate(problem, given, 8, overlap="perfect")
    assert point.sim.tok_s_user == pytest.approx(4096 / point.sim.step_s)
    assert point.sim.tok_s_gpu == pytest.approx(4096 / point.sim.step_s)


def test_what_does_not_fit_or_divide_is_refused() -> None:
    with pytest.raises(CapacityError, match="GB"):
        evaluate(PROBLEM, plan(8, 1, 1), 2**20, overlap="perfect")
    with pytest.raises(PlacementError, match="do not divide"):
        evaluate(PROBLEM, plan(8, 1, 1), 12, overlap="perfect")
