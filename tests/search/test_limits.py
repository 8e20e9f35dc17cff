"""Limits of a search: each ends it with its own reason, keeps what was found, and leaves bounds true."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rooflang.errors import (
    CapacityError,
    LimitReached,
    PlacementError,
    RooflangError,
    UnreachableError,
    ValueRangeError,
)
from rooflang.search.api import optimize
from rooflang.search.method import Method
from rooflang.search.part import Part, Way
from rooflang.search.point import Found, Point, Result
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.verify import certified, verify_plan

from .toys import perceptron


def run(**changes: Any) -> Result:
    given: dict[str, Any] = {"hardware": "b300", "gpus": 4, "batch": [8, 64, 512], "pp": 1}
    return optimize(perceptron(), **{**given, **changes})


@pytest.mark.parametrize("name", ["time_limit_s", "memory_limit_bytes"])
@pytest.mark.parametrize("value", [math.nan, 0.0, -1.0])
def test_limits_are_above_zero(name: str, value: float) -> None:
    with pytest.raises(ValueRangeError, match="--" + name.split("_")[0] + "-limit"):
        run(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("gap", value) for value in (math.nan, -0.1, 1.0, "1%", None)),
        *(("node_limit", value) for value in (0, 2.5)),
        *(("seed", value) for value in (-1, 2**32, None, 0.5)),
        *(("jobs", value) for value in (-1, "all", 2.5)),
        *(("min_user", value) for value in ("50", -1.0)),
        ("max_tpot_s", "30ms"),
        ("axes", "two"),
        ("fix", [5]),
        ("disable_rules", [None]),
    ],
)
def test_efforts_and_goals_that_are_none(name: str, value: object) -> None:
    with pytest.raises(ValueRangeError):
        run(**{name: value})


def test_the_time_limit_holds_beside_a_progress_of_ones_own() -> None:
    with pytest.raises(LimitReached, match="time limit"):
        run(progress=Progress(), time_limit_s=1e-9)
    with pytest.raises(LimitReached, match="time limit"):
        run(progress=Progress(limit_s=0.0))
    # Neither is used up by a search before.
    shared = Progress()
    with pytest.raises(LimitReached):
        run(progress=shared, time_limit_s=1e-9)
    assert run(progress=shared).stopped_by == "complete"


def test_nothing_more_is_extracted_from_once_the_time_is_up() -> None:
    problem = Problem.of(perceptron(), hardware="b300", gpus=4, stage="decode", context=1, assumptions="physical")
    part = Part.of(Way(problem=problem, batches=(64,), overlap="perfect"), 1, Progress())
    found = part.best(0, math.inf, Progress(limit_s=0.0))
    assert found.plan is None and found.extracted == 0
    assert 0.0 < found.bound_s < math.inf
    whole = part.best(0, math.inf, Progress())
    assert whole.plan is not None and found.bound_s <= whole.bound_s * (1 + 1e-9)


def test_a_memory_limit_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitReached, match="memory limit"):
        run(memory_limit_bytes=1.0)
    assert run(memory_limit_bytes=1e15).stopped_by == "complete"
    measured = iter([1] * 40 + [2**40] * 1000)
    monkeypatch.setattr("rooflang.search.progress._resident_bytes", lambda: next(measured))
    for search in ("egraph", "grid"):
        some = run(memory_limit_bytes=2**30, search=search, batch=None)
        if some.stopped_by == "memory limit":
            assert some.frontier
            return
    raise AssertionError("no search asked how much memory it has")


def test_a_node_limit_is_told_and_bounds_say_so() -> None:
    whole = run()
    rows = 10
    while True:  # the smallest e-graph that has a plan
        try:
            cut = run(node_limit=rows)
            break
        except RooflangError as error:
            assert not isinstance(error, LimitReached) or "node limit" in error.what
            rows *= 2
    assert cut.stopped_by == "node limit"
    assert all("node limit" in point.bound_scope for point in cut.frontier)
    assert whole.stopped_by == "complete"
    assert max(p.sim.tok_s_gpu for p in cut.points) <= max(p.sim.tok_s_gpu for p in whole.points) * 1.01


def test_a_wider_gap_is_kept_to() -> None:
    for gap in (0.0, 0.3):
        for point in run(gap=gap).points:
            assert point.gap is not None and point.gap <= max(2 * gap, 0.02)


def test_the_seed_changes_the_numbers_of_the_evaluation_and_no_plan() -> None:
    one, same, other = run(seed=1), run(seed=1), run(seed=2)
    assert [p.to_json() for p in one.frontier] == [p.to_json() for p in same.frontier]
    assert one.inputs == same.inputs != other.inputs
    assert [p.sim for p in one.frontier] == [p.sim for p in other.frontier]
    seeds = {p.certificate["evaluated"]["seed"] for p in (*one.frontier, *other.frontier)}
    assert seeds == {1, 2}


def test_ctrl_c_while_certificates_are_made_keeps_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Point] = []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        found = certified(*arguments, **options)
        done.extend(found)
        return found

    monkeypatch.setattr("rooflang.search.outcome.certified", interrupted)
    result = run()
    assert result.stopped_by == "interrupted"
    assert len(result.frontier) == 2


def test_unreachable_after_a_limit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Progress, "stopped_by", property(lambda self: "time limit"))
    with pytest.raises(UnreachableError, match=r"ended early \(time limit\)"):
        run(min_user=1e12)


# -- several numbers of GPUs, and batch sizes between powers of two ---------------------------------------------------


def test_every_number_of_gpus_up_to_the_most() -> None:
    result = run(gpus=0, max_gpus=16, batch=[64])
    alone = {gpus: run(gpus=gpus, batch=[64]) for gpus in (1, 2, 4, 8, 16)}
    found = {point.gpus: point for point in result.points}
    assert set(found) >= set(alone)
    for gpus, other in alone.items():
        assert found[gpus].sim == other.points[0].sim
    assert result.inputs["max_gpus"] == 16
    with pytest.raises(ValueRangeError, match="--max-gpus"):
        run(gpus=4, max_gpus=8)
    with pytest.raises(ValueRangeError, match="at most 3 GPUs"):
        run(hardware="gb300", gpus=0, max_gpus=3)


def test_gpus_that_the_pipeline_does_not_divide_are_left_out_and_named() -> None:
    result = optimize(perceptron(), hardware="b300", max_gpus=4, batch=[64], fix=["mesh=2"])
    assert {point.gpus for point in result.points} == {2}
    assert result.notes == ("left out: 1, 3, 4 GPUs (mesh 2 on 1 GPUs)",)


def test_gpus_with_room_for_the_weights_come_first_and_a_limit_names_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    searched: dict[int, float] = {}
    searching = Method.run

    def searching_for_a_minute(self: Method, problem: Problem, watch: Progress) -> Found:
        nonlocal now_s
        searched[problem.cluster.gpus] = watch.limit_s
        found = searching(self, problem, watch)
        now_s += 60.0
        return found

    monkeypatch.setattr("rooflang.search.progress.time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(Method, "run", searching_for_a_minute)
    monkeypatch.setattr(Problem, "has_room", property(lambda self: self.cluster.gpus > 2))
    result = run(gpus=0, max_gpus=4, batch=[60], pp=None, time_limit_s=100.0)
    assert searched == {3: 50.0, 4: 40.0}  # half of the time, and all that was left
    assert {point.gpus for point in result.points} == {3, 4}
    assert result.stopped_by == "time limit"
    assert result.notes == ("not searched: 1, 2 GPUs (time limit)",)


@pytest.mark.parametrize(("gpus", "room"), [(8, False), (16, True)])
def test_room_for_the_weights(gpus: int, room: bool) -> None:
    """405.85 B parameters in BF16 are 812 GB; eight H100 have 640 GB, sixteen 1,280 GB."""
    problem = Problem.of("llama-3.1-405b", hardware="h100", gpus=gpus, stage="decode", context=1024)
    assert problem.has_room is room


def test_results_of_several_numbers_of_gpus_are_verified_with_their_prices(tmp_path: Path) -> None:
    told = run(gpus=0, max_gpus=2, batch=[64, 128], gpu_hour_usd=3.0).to_json()
    assert {len(point["mesh"]) for point in told["frontier"]} == {0, 1}
    path = tmp_path / "out.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    assert len(verify_plan(path, model=perceptron()).points) == len(told["frontier"])
    for name, value in (("usd_per_million_tokens", 1.0), ("mesh", [4])):
        changed = {**told, "frontier": [{**told["frontier"][0], name: value}]}
        path.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(PlacementError):
            verify_plan(path, model=perceptron())


def test_the_best_batch_lies_between_two_powers_of_two() -> None:
    batch = 64
    frontier = {p.batch: p for p in run(batch=[batch, 2 * batch]).points}
    least = (frontier[batch].sim.tok_s_user + frontier[batch * 2].sim.tok_s_user) / 2
    (best,) = run(batch=None, objective="throughput", min_user=least).frontier
    assert batch < best.batch < 2 * batch
    assert best.sim.tok_s_user >= least
    assert best.sim.tok_s_gpu > frontier[batch].sim.tok_s_gpu
    # A batch that was asked for is the only one.
    (only,) = run(batch=[batch], objective="throughput", min_user=least).frontier
    assert only.batch == batch


def test_more_requests_than_any_memory_holds_are_refused() -> None:
    with pytest.raises(CapacityError, match="at a batch size tried"):
        optimize("llama-3.1-8b", hardware="b300", gpus=8, context=8192, batch=[9_999_999_999], pp=4)
