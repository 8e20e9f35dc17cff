"""Curves: what a search found, without what only a replay needs; what does not fit is an answer."""

from __future__ import annotations

from typing import Any

import pytest

from rooflang.errors import CapacityError, LimitReached
from rooflang.report.reproduction import frontiers
from rooflang.report.reproduction.frontiers import SERIES, curves, frontier_jobs, search_setting
from rooflang.report.reproduction.setting import BATCHES, LIMIT_S, Scope
from tests.report.reproduction.curves import curve, point

ONE = Scope(models=("deepseek-v4-flash",), stages=("decode",), contexts=(2**16,), gpus=(8,), hardware=("b300",))
(ONE_SETTING,) = ONE.settings()


def test_every_setting_has_a_job_for_each_series() -> None:
    jobs = list(frontier_jobs(Scope()))
    assert len(jobs) == len({job.name for job in jobs}) == 128 * 4
    assert len(SERIES) == 4
    for job in frontier_jobs(ONE):
        searched = job.asked["search"] == "egraph"
        asked = tuple(job.asked.get(name) for name in ("batch", "effort", "time_limit_s"))
        assert asked == ((BATCHES, "look", LIMIT_S) if searched else (None, None, None))


def test_a_setting_is_searched_and_told_as_a_curve() -> None:
    (job,) = (job for job in frontier_jobs(ONE) if job.name.endswith("grid-paper"))
    data = job.work(**{**job.asked, "batch": (8, 512)})
    (found,) = curves(ONE, {job.name: data})
    assert found.stopped_by == "complete"
    assert not found.refusal
    users = [each["tok_s_user"] for each in found.frontier]
    assert users == sorted(users, reverse=True)
    assert {each["batch"] for each in found.points} == {8, 512}
    assert all("certificate" not in each for each in found.points)
    best = found.best(512)
    assert best is not None
    assert best["tok_s_gpu"] == max(each["tok_s_gpu"] for each in found.points)
    assert found.best(64) is None


@pytest.mark.parametrize(
    ("error", "stopped_by", "said"),
    [(CapacityError("too large"), "complete", "too large"), (LimitReached("late"), "time limit", "time limit")],
)
def test_what_has_no_point_says_why(
    monkeypatch: pytest.MonkeyPatch, error: Exception, stopped_by: str, said: str
) -> None:
    def nothing(**asked: Any) -> None:
        raise error

    monkeypatch.setattr(frontiers, "optimize", nothing)
    data = search_setting(**ONE_SETTING.asked(), assumptions="paper", search="grid")
    assert data["points"] == []
    assert data["stopped_by"] == stopped_by
    assert said in data["refusal"]


def test_what_exceeds_all_memory_is_not_searched_for() -> None:
    asked = {**ONE_SETTING.asked(), "model": "kimi-k3", "hardware": "h200", "assumptions": "paper"}
    data = search_setting(**asked, search="egraph", batch=BATCHES)
    assert data["points"] == []
    assert data["refusal"] == "weights and caches exceed the HBM of all GPUs"
    asked = {name: value for name, value in asked.items() if name != "model"}
    assert frontiers._with_room(model="deepseek-v4-flash", **asked, batch=(1, 4**8)) == (1,)
    prefill = {**ONE_SETTING.asked(), "stage": "prefill", "assumptions": "paper"}
    assert frontiers._with_room(**prefill, batch=BATCHES) == BATCHES[:4]
    beyond = {**prefill, "model": "kimi-k3", "context": 2**20, "assumptions": "physical"}  # the grid has room for none
    assert frontiers._with_room(**beyond, batch=BATCHES) == BATCHES[:1]


def test_the_search_is_nowhere_behind_the_grid() -> None:
    asked = {**ONE_SETTING.asked(), "assumptions": "paper", "batch": (8, 512)}
    grid, egraph = (search_setting(**asked, search="grid"), search_setting(**asked, search="egraph", effort="look"))
    for batch in (8, 512):
        theirs, ours = (max(p["tok_s_gpu"] for p in found["points"] if p["batch"] == batch) for found in (grid, egraph))
        assert ours >= theirs * (1 - 1e-9)
    assert all(point["bound_s"] <= point["step_s"] for point in egraph["points"])


def test_a_frontier_is_in_order_and_without_what_is_beaten() -> None:
    found = curve(point(4, 1.0, 9.0), point(1, 5.0, 2.0), point(2, 4.0, 1.0, on_frontier=False))
    assert [each["batch"] for each in found.frontier] == [1, 4]
