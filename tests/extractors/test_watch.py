"""Limits that come at any moment: what there is by then stands, and nothing more is begun."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.errors import LimitReached
from rooflang.extractors import dual, ilp, stages
from rooflang.extractors.memory import fullest
from rooflang.extractors.pool import Pool
from rooflang.extractors.solver import Solver
from rooflang.extractors.tables import Tables
from rooflang.extractors.task import Extraction, Task
from rooflang.place.grid import balanced, partition

from .graphs import Case, residual
from .test_memory import squeezed
from .test_simulation import agrees
from .test_windows import tight


@dataclass
class Countdown:
    """A watch that says no so many times; how often it was asked."""

    left: float
    asked: int = 0

    @property
    def expired(self) -> bool:
        self.asked += 1
        return self.over

    @property
    def over(self) -> bool:
        return self.asked > self.left

    @property
    def remaining_s(self) -> float:
        return 0.0 if self.over else float("inf")


def branches() -> Task:
    case = Case.of(residual(batch=64, hidden=256, ffn=512, layers=3), mesh=(2, 2), domain=2)
    return case.task()


def pipeline() -> Task:
    case = Case.of(residual(batch=64, hidden=1024, layers=6), mesh=(2,), stages=2, saturate=True)
    return case.task(stages=partition(case.blocks, balanced(6, 2)))


#: What each part of an extraction is for: branches, partitions, plans that are squeezed into memory, and both.
TASKS: dict[str, Callable[[], Task]] = {
    "branches": branches,
    "pipeline": pipeline,
    "squeezed": lambda: squeezed("cached", (2,), ("hbm", "dram"), 0.3, "max"),
    "shared leaves": lambda: squeezed("joined", (2,), ("hbm", "dram"), 0.4, "max"),
    "squeezed pipeline": lambda: tight("cached", 2, 0.35, "max"),
}


def extracted(task: Task, watch: Countdown) -> Extraction:
    """An extraction that knows nothing beforehand, and begins nothing that takes long once it is over."""

    def guarded(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            assert not watch.over, f"{work.__name__} after the limit"
            return work(*given, **named)

        return run

    dual.dual.cache_clear()
    with ExitStack() as patches:
        for owner, name in ((Tables, "eliminate"), (Solver, "solve"), (ilp, "network"), (ilp, "capacity_rows")):
            patches.enter_context(mock.patch.object(owner, name, guarded(getattr(owner, name))))
        return stages.extract(replace(task, watch=watch), gap=0.0, pool=Pool(costed=task.costed))


@lru_cache
def whole(name: str) -> tuple[Task, Extraction, int]:
    """A task, what comes of it without a limit, and how many questions that takes."""
    task, watch = TASKS[name](), Countdown(float("inf"))
    found = extracted(task, watch)
    return task, found, watch.asked


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=12, deadline=None)
@given(part=st.floats(0.0, 1.0))
def test_at_any_moment_there_is_a_plan_and_a_bound_or_an_error(name: str, part: float) -> None:
    task, best, asked = whole(name)
    watch = Countdown(round(part * asked))
    try:
        found = extracted(task, watch)
    except LimitReached:
        return
    agrees(replace(task, stages=found.stages), found)
    assert fullest(replace(task, stages=found.stages), found.decisions).share <= 1.0
    assert best.bound_s * (1 - 1e-9) <= found.value_s
    assert found.bound_s <= best.value_s * (1 + 1e-9)


@pytest.mark.parametrize("name", TASKS)
def test_later_limits_leave_better_plans_and_the_last_one_changes_nothing(name: str) -> None:
    task, best, asked = whole(name)
    values = [(math.inf, math.inf)]
    for share in (0.5, 0.8, 1.0):
        watch = Countdown(round(share * asked))
        with suppress(LimitReached):
            found = extracted(task, watch)
            values.append((found.value_s, -found.bound_s))
        assert watch.asked <= watch.left + 12  # what goes on asks, and is told to end
    assert values == sorted(values, reverse=True)
    assert values[-1] == (best.value_s, -best.bound_s)
    assert asked > 12


def test_a_limit_before_the_first_plan_is_an_error_that_says_so() -> None:
    for build in TASKS.values():
        with pytest.raises(LimitReached, match="a limit was reached before a plan was found"):
            extracted(build(), Countdown(0))


def test_equal_limits_leave_equal_plans() -> None:
    task, _, asked = whole("squeezed pipeline")
    one, other = (extracted(task, Countdown(asked // 2)) for _ in range(2))
    assert replace(one, seconds=0.0) == replace(other, seconds=0.0)
