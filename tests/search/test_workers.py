"""Searches on several processes: the same results, errors as they were raised, and nothing left running."""

from __future__ import annotations

import math
import sys

import pytest

from rooflang.errors import CapacityError, PlacementError
from rooflang.place.lower import lower
from rooflang.search import progress
from rooflang.search.effort import Effort
from rooflang.search.egraph import search_egraph
from rooflang.search.part import Way
from rooflang.search.point import Found
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress, silent
from rooflang.search.workers import Workers, _Process
from rooflang.sim.simulate import simulate

from .toys import small_flash

BATCHES = (8, 64, 512)


def small() -> Problem:
    return Problem.of(small_flash(), hardware="b300", gpus=8, stage="decode", context=8192)


def searched(jobs: int) -> Found:
    return search_egraph(small(), (1, 2), BATCHES, "perfect", frozenset(), Progress(), effort=Effort(jobs=jobs))


def test_the_number_of_processes_changes_nothing() -> None:
    one, two = searched(1), searched(2)
    assert [p.to_json() for p in one.points] == [p.to_json() for p in two.points]
    assert one.evaluated == two.evaluated
    assert {p.batch for p in one.points} == set(BATCHES)


def test_a_quiet_search_says_nothing_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "_QUIET_S", -1.0)
    monkeypatch.setattr(progress, "_EVERY_S", -1.0)
    search_egraph(small(), (1,), (64,), "perfect", frozenset(), Progress(sink=silent), effort=Effort(jobs=1))
    assert capsys.readouterr().err == ""


def test_a_first_look_is_what_the_engine_finds() -> None:
    """Step times and bounds of every mesh and batch size: simulated again, and not below what cannot be beaten."""
    problem = small()
    way = Way(problem=problem, batches=BATCHES, overlap="perfect")
    with Workers(way, 1) as workers:
        (found,) = workers.open((1,), Progress(), every=True)
        best = [workers.best(1, at, math.inf, Progress())() for at in range(len(BATCHES))]
    assert {(one.mesh, one.at) for one in found.looked} == {(mesh, at) for mesh in ((8,), (2, 4)) for at in range(3)}
    for at, each in enumerate(best):
        assert each.plan is not None
        placed = lower(each.plan, problem.blocks)
        sim = simulate(placed, problem.cost(each.plan.mesh, BATCHES[at]), tokens=1)
        looked = min(one.step_s for one in found.looked if one.at == at)
        assert each.bound_s <= sim.step_s * (1 + 1e-9)
        assert each.bound_s <= looked * (1 + 1e-9)
        assert sim.step_s <= looked * (1 + 1e-9)


def fails(needs_bytes: float) -> None:
    raise CapacityError("too large", needs_bytes=needs_bytes, where="here")


def test_an_error_comes_back_as_it_was_raised() -> None:
    process = _Process()
    try:
        with pytest.raises(CapacityError, match="here: too large") as caught:
            process.submit(fails, 12.5).result()
        assert caught.value.needs_bytes == 12.5
        assert process.submit(math.sqrt, 9.0).result() == 3.0
    finally:
        process.end()
    assert process._process.poll() is not None


def test_processes_end_when_the_search_is_interrupted() -> None:
    workers = Workers(Way(problem=small(), batches=BATCHES, overlap="perfect"), 2)
    with pytest.raises(PlacementError), workers:
        next(workers.open((1, 2), Progress()))
        processes = [process._process for process in workers._processes]
        assert len(processes) == 2
        raise PlacementError("stop")
    assert all(process.poll() is not None for process in processes)
