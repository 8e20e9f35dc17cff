"""Objectives and constraints: the best of what meets them, and the nearest of what does not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rooflang.errors import UnknownNameError, UnreachableError, ValueRangeError
from rooflang.search.goal import Goal
from rooflang.search.point import Point, pareto, usd_per_million_tokens

from .toys import point

RATES = st.floats(0.1, 1e6)
POINTS = st.lists(st.builds(point, RATES, RATES), min_size=1, max_size=8)


@given(POINTS)
def test_the_best_of_each_objective(points: list[Point]) -> None:
    assert Goal().choose(points) == pareto(points)
    (most,) = Goal(objective="throughput").choose(points)
    (fastest,) = Goal(objective="latency").choose(points)
    (cheapest,) = Goal(objective="cost", gpu_hour_usd=3.0).choose(points)
    assert most.sim.tok_s_gpu == max(p.sim.tok_s_gpu for p in points)
    assert fastest.sim.tok_s_user == max(p.sim.tok_s_user for p in points)
    prices = [usd_per_million_tokens(3.0, p.sim.tok_s_gpu) for p in points]
    assert usd_per_million_tokens(3.0, cheapest.sim.tok_s_gpu) == min(prices)
    assert all(any(each is p for p in points) for each in (most, fastest, cheapest))
    assert Goal(objective="cost", gpu_hour_usd=3.0).choose([]) == ()


@given(POINTS, RATES)
def test_constraints_are_met_or_missed(points: list[Point], least: float) -> None:
    for goal, tokens in (
        (Goal(min_user=least), 1.0),
        (Goal(max_tpot_s=1.0 / least), 1.0),
        (Goal(max_ttft_s=4096 / least), 4096.0),
    ):
        for each in points:
            assume(not math.isclose(each.sim.tok_s_user, least, rel_tol=1e-9))
            assert goal.meets(each, tokens) == (each.sim.tok_s_user > least)


@given(POINTS)
def test_the_nearest_misses_least(points: list[Point]) -> None:
    goal = Goal(min_user=1e9)
    with pytest.raises(UnreachableError) as caught:
        goal.unreachable([(p, 1.0) for p in points], "here", "complete")
    nearest = caught.value.nearest
    assert isinstance(nearest, Point)
    assert nearest.sim.tok_s_user == max(p.sim.tok_s_user for p in points)


def test_large_numbers_are_told_in_digits() -> None:
    with pytest.raises(UnreachableError) as caught:
        Goal(min_user=2e6).unreachable([(point(240_905.6, 12.345), 1.0)], "", "complete")
    assert "has 2,000,000 tok/s/user or more" in caught.value.what
    assert "has 240,906 tok/s/user, 12.35 tok/s/GPU" in caught.value.expected


def test_of_two_constraints_the_worse_counts() -> None:
    goal = Goal(min_user=10.0, max_tpot_s=0.01)  # 100 tok/s/user
    assert goal.nearest([(point(50, 9), 1.0), (point(20, 10), 1.0)])[0].sim.tok_s_user == 50
    with pytest.raises(UnreachableError, match=r"10 tok/s/user or more and at most 10 ms per output token"):
        goal.unreachable([(point(50, 9), 1.0)], "", "complete")


def test_a_search_that_ended_early_is_told() -> None:
    with pytest.raises(UnreachableError, match="ended early \\(time limit\\)"):
        Goal(min_user=10.0).unreachable([(point(5, 9), 1.0)], "", "time limit")


def test_dollars_per_million_tokens() -> None:
    """3,600 tokens a second: 12.96 million an hour."""
    assert usd_per_million_tokens(3.0, 3600.0) == pytest.approx(3.0 / 12.96)


@pytest.mark.parametrize("name", ["min_user", "max_ttft_s", "max_tpot_s", "gpu_hour_usd"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_numbers_that_are_none(name: str, value: float) -> None:
    given_name: dict[str, Any] = {name: value}
    with pytest.raises(ValueRangeError, match="--" + name.removesuffix("_s").replace("_", "-")):
        Goal(**given_name)


def test_what_does_not_go_together() -> None:
    with pytest.raises(UnknownNameError, match="fastest"):
        Goal(objective="fastest")  # type: ignore[arg-type]
    with pytest.raises(ValueRangeError, match="without a price"):
        Goal(objective="cost")
    with pytest.raises(ValueRangeError, match="no first token"):
        Goal(max_ttft_s=1.0).check_stage("decode")
    with pytest.raises(ValueRangeError, match="no output tokens"):
        Goal(max_tpot_s=1.0).check_stage("prefill")
    Goal(max_ttft_s=1.0).check_stage("prefill")
    Goal(max_tpot_s=1.0).check_stage("decode")


def test_inputs_name_what_was_asked_for() -> None:
    assert Goal().inputs() == {}
    assert Goal(objective="latency", min_user=5.0).inputs() == {"objective": "latency", "min_user": 5.0}
