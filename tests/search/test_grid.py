"""The sweep of the grid: nothing that matters is left out, and what does not fit gives way to what does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rooflang.errors import CapacityError, PlacementError
from rooflang.place.grid import grid_plan
from rooflang.search import grid as module
from rooflang.search.evaluate import evaluate
from rooflang.search.grid import grid_candidates, search_grid
from rooflang.search.point import Point, pareto
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import grid_shapes, pipeline_degrees

from .toys import perceptron, small_flash, stencil

PROBLEM = Problem.of(small_flash(), hardware="b300", gpus=8, context=65536)
DEGREES = pipeline_degrees(PROBLEM, None)
BATCHES = (8, 100, 512, 8192)


def everything(problem: Problem, degrees: tuple[int, ...], batches: tuple[int, ...]) -> Iterator[Point]:
    """Every shape at every batch size, simulated if it runs and fits."""
    for dp, cp, pp in grid_shapes(problem, degrees):
        for batch in batches:
            try:
                plan = grid_plan(problem.graph.resized(batch=batch), problem.cluster, dp=dp, cp=cp, pp=pp)
                yield evaluate(problem, plan, batch, overlap="perfect")
            except (PlacementError, CapacityError):
                continue


@pytest.fixture(scope="module")
def simulated() -> list[Point]:
    return list(everything(PROBLEM, DEGREES, BATCHES))


def key(point: Point) -> tuple[int, str]:
    return point.batch, point.origin


def test_the_front_is_that_of_all_configurations(simulated: list[Point]) -> None:
    found = search_grid(PROBLEM, DEGREES, BATCHES, "perfect", Progress())
    assert found.stopped_by == "complete"
    ours, all_of_them = pareto(found.points), pareto(simulated)
    assert [key(p) for p in ours] == [key(p) for p in all_of_them]
    assert [p.sim for p in ours] == [p.sim for p in all_of_them]
    for batch in BATCHES:
        mine = pareto([p for p in found.points if p.batch == batch])
        assert mine == pareto([p for p in simulated if p.batch == batch])
    # Fewer simulations than configurations, all accounted for.
    counts = found.evaluated
    shapes = len(list(grid_shapes(PROBLEM, DEGREES)))
    assert counts.configurations == shapes * len(BATCHES)
    assert counts.simulated < len(simulated)
    assert counts.impossible + counts.screened_out + counts.simulated == counts.configurations
    assert counts.out_of_memory == counts.simulated - len(found.points)


def test_candidates_are_what_may_run_and_fit(simulated: list[Point]) -> None:
    found = {
        (c.batch, c.plan.origin): c for c in grid_candidates(PROBLEM, DEGREES, BATCHES, "perfect", Progress())
    }  # fmt: skip
    assert {key(p) for p in simulated} <= set(found)
    assert not {batch for batch, _ in found} & {3, 5}
    for point in simulated:
        candidate = found[key(point)]
        assert candidate.least_bytes <= point.sim.peak_bytes + 10_000
        assert candidate.latency_s == candidate.step_s * point.pp
        if point.pp == 1:
            assert candidate.step_s == pytest.approx(point.sim.step_s, rel=1e-9)


def test_what_does_not_fit_gives_way_to_the_next(simulated: list[Point], monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded from below before a simulation: the fastest may still turn out not to fit."""
    mine = [p for p in simulated if p.batch == 512]
    fastest = pareto(mine)
    full = {p.origin for p in fastest}

    def tight(problem: Problem, plan, batch: int, **more):  # type: ignore[no-untyped-def]
        if plan.origin in full:
            raise CapacityError("too large", needs_bytes=len(plan.origin))
        return evaluate(problem, plan, batch, **more)

    monkeypatch.setattr("rooflang.search.tally.evaluate", tight)
    found = search_grid(PROBLEM, DEGREES, (512,), "perfect", Progress())
    rest = [p for p in mine if p.origin not in full]
    assert rest and pareto(found.points) == pareto(rest)
    assert found.evaluated.out_of_memory == len(full)
    assert found.nearest is not None and found.nearest.needs_bytes == min(map(len, full))


def test_where_nothing_fits_it_says_what_is_nearest() -> None:
    found = search_grid(PROBLEM, (1,), (2**22, 2**24), "perfect", Progress())
    assert found.points == ()
    assert found.stopped_by == "complete"
    assert found.nearest is not None
    assert found.evaluated.simulated == found.evaluated.out_of_memory == 1
    least = min(c.least_bytes for c in _all_candidates((2**22, 2**24)))
    assert found.nearest.needs_bytes == pytest.approx(least, rel=0.1)


def _all_candidates(batches: tuple[int, ...]):  # type: ignore[no-untyped-def]
    sweep = module._Sweep()
    module._screen(PROBLEM, (1,), batches, "perfect", Progress(), sweep)
    return sweep.candidates


def test_batches_that_nothing_divides() -> None:
    found = search_grid(PROBLEM, DEGREES, (3,), "perfect", Progress())
    assert (found.points, found.nearest) == ((), None)
    assert found.evaluated.impossible == found.evaluated.configurations
    # With one GPU a stage any batch runs.
    four = Problem.of(small_flash(), hardware="b300", gpus=4, context=65536)
    assert {p.pp for p in search_grid(four, (1, 2, 4), (3,), "perfect", Progress()).points} == {4}


def test_an_expired_limit_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search_grid(PROBLEM, DEGREES, BATCHES, "perfect", Progress(limit_s=0.0))
    assert (found.points, found.stopped_by) == ((), "time limit")
    watch, seen = Progress(), []

    def slow(problem: Problem, plan, batch: int, **more):  # type: ignore[no-untyped-def]
        seen.append(batch)
        if len(seen) == 2:
            watch.limit_s = 0.0
        return evaluate(problem, plan, batch, **more)

    monkeypatch.setattr("rooflang.search.tally.evaluate", slow)
    found = search_grid(PROBLEM, DEGREES, BATCHES, "perfect", watch)
    assert (len(found.points), found.stopped_by) == (2, "time limit")


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def interrupted(problem: Problem, plan, batch: int, **more):  # type: ignore[no-untyped-def]
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(batch)
        return evaluate(problem, plan, batch, **more)

    monkeypatch.setattr("rooflang.search.tally.evaluate", interrupted)
    found = search_grid(PROBLEM, DEGREES, BATCHES, "perfect", Progress())
    assert (len(found.points), found.stopped_by) == (2, "interrupted")


def test_graphs_without_layers_or_batch_are_swept_too() -> None:
    batched = Problem.of(perceptron(), hardware="b300", gpus=8)
    found = search_grid(batched, (1,), (4, 8, 64), "perfect", Progress())
    assert [(p.batch, p.origin) for p in found.points] == [(8, "grid dp8 cp1 ep8 pp1"), (64, "grid dp8 cp1 ep8 pp1")]
    alone = Problem.of(stencil(), hardware="b300", gpus=1)
    found = search_grid(alone, (1,), (1,), "perfect", Progress())
    assert [(p.batch, p.pp, p.mesh) for p in found.points] == [(1, 1, ())]
    # Without requests the grid has no way to use a second GPU but a pipeline, and one block is no pipeline.
    pair = Problem.of(stencil(), hardware="b300", gpus=2)
    assert search_grid(pair, (1,), (1,), "perfect", Progress()).points == ()
    staged = Problem.of(stencil(blocks=True), hardware="b300", gpus=2)
    assert [p.pp for p in search_grid(staged, (1, 2), (1,), "perfect", Progress()).points] == [2]
