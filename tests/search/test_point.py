"""Points, gaps, fronts and their JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import CapacityError
from rooflang.search.point import RESULT_SCHEMA, Evaluated, Result, nearer, pareto

from .toys import point


def test_the_gap_is_relative_to_the_bound() -> None:
    assert point(1, 1, step_s=1.5, bound_s=1.2).gap == pytest.approx(0.25)
    assert point(1, 1, step_s=1.5).gap is None
    assert point(1, 1, bound_s=1.0).gap == 0.0


def test_a_point_beaten_in_both_is_out() -> None:
    fast, middle, slow = point(9, 1), point(5, 5), point(1, 9)
    beaten = [point(5, 4), point(4, 5), point(0.5, 8), point(8, 1)]
    assert pareto([*beaten, slow, middle, fast]) == (fast, middle, slow)


def test_of_equal_points_the_first_stays() -> None:
    first, second = point(2, 2, batch=1), point(2, 2, batch=7)
    assert [p.batch for p in pareto([first, second])] == [1]
    assert [p.batch for p in pareto([second, first])] == [7]
    # Equal in one: the better one of the other stays.
    assert pareto([point(2, 1), point(2, 3), point(1, 3)]) == (point(2, 3),)


def test_no_points_no_front() -> None:
    assert pareto([]) == ()


numbers = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=12)


@given(numbers)
def test_the_front_is_what_nobody_dominates(pairs: list[tuple[int, int]]) -> None:
    front = [(p.sim.tok_s_user, p.sim.tok_s_gpu) for p in pareto([point(u, g) for u, g in pairs])]
    alone = {
        (u, g) for u, g in pairs if not any((a >= u and b >= g) and (a, b) != (u, g) for a, b in pairs)
    }  # fmt: skip
    assert front == sorted(alone, reverse=True)


def test_json_of_a_point() -> None:
    data = json.loads(json.dumps(point(2, 3, batch=4, step_s=1.5, bound_s=1.2).to_json()))
    assert data == {
        "batch": 4,
        "tok_s_gpu": 3,
        "tok_s_user": 2,
        "step_s": 1.5,
        "bound_s": 1.2,
        "bound_scope": "everything",
        "gap": pytest.approx(0.25),
        "peak_bytes": 10,
        "capacity_bytes": 20,
        "largest_tensors": [{"name": "w", "bytes": 7}, {"name": "x", "bytes": 3}],
        "bottleneck": "memory",
        "groups_s": {"experts": 0.5},
        "overlap": "perfect",
        "pp": 1,
        "pp_partition": [3],
        "mesh": [8],
        "plan": "experts: expert→8; pipeline 1",
        "origin": "made up",
        "certificate": {"schema": "rooflang.certificate/1"},
    }


def test_json_of_a_result() -> None:
    result = Result(
        inputs={"model": "m"},
        frontier=(point(1, 2),),
        points=(point(1, 2), point(1, 1)),
        evaluated=Evaluated(configurations=9, screened_out=4, impossible=2, extracted=1, simulated=3, out_of_memory=1),
        stopped_by="complete",
        seconds=0.5,
        notes=("a note",),
    )
    data = json.loads(json.dumps(result.to_json()))
    assert data["schema"] == RESULT_SCHEMA == "rooflang.result/1"
    assert data["frontier"] == [json.loads(json.dumps(point(1, 2).to_json()))]
    assert data["evaluated"] == {
        "configurations": 9,
        "screened_out": 4,
        "impossible": 2,
        "extracted": 1,
        "simulated": 3,
        "out_of_memory": 1,
    }
    assert (data["inputs"], data["stopped_by"], data["seconds"], data["notes"]) == (
        {"model": "m"},
        "complete",
        0.5,
        ["a note"],
    )


def test_nearer_is_what_lacks_least() -> None:
    small, large = CapacityError("a", needs_bytes=10), CapacityError("b", needs_bytes=20)
    assert nearer(small, large) is nearer(large, small) is nearer(None, small) is nearer(small, None) is small
    assert nearer(None, None) is None
