"""From what was searched to a result: the points that were asked for, certified, or why there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from rooflang.errors import CapacityError, LimitReached, ValueRangeError
from rooflang.search.goal import Goal
from rooflang.search.inputs import hashed_inputs
from rooflang.search.method import Method, Searched
from rooflang.search.point import Point, Result
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.verify import certified


def outcome(
    goal: Goal, method: Method, problem: Problem, coarse: Searched, watch: Progress, *, max_gpus: int | None = None
) -> Result:
    """The result for one goal of searches of a problem; with `max_gpus` on several numbers of GPUs, of which `problem`
    has the largest. One search can serve several goals. Raises as `rooflang.search.api.optimize` does."""
    if not coarse.points:
        _explain_nothing(problem, coarse, method)
    searched = coarse.finer(method, goal, watch)
    chosen = _chosen(goal, searched, where=f"{problem.name} on {problem.cluster.platform.name}")
    frontier, stopped_by = _certified(chosen, searched, method.effort.seed)
    given = {} if max_gpus is None else {"max_gpus": max_gpus}
    return Result(
        inputs=hashed_inputs(problem, **given, **method.inputs(), **goal.inputs()),
        frontier=frontier,
        points=tuple(point for point, _ in searched.points),
        evaluated=searched.evaluated,
        stopped_by=stopped_by,
        seconds=watch.elapsed_s,
        notes=tuple(_notes(method, searched)),
        gpu_hour_usd=goal.gpu_hour_usd,
    )


def _chosen(goal: Goal, searched: Searched, where: str) -> tuple[Point, ...]:
    """The points that meet the constraints and that the objective asks for. Raises `UnreachableError`."""
    told = [(point, problem.tokens) for point, problem in searched.points]
    good = [point for point, tokens in told if goal.meets(point, tokens)]
    if not good:
        goal.unreachable(told, where, searched.stopped_by)
    return goal.choose(good)


def _certified(chosen: Sequence[Point], searched: Searched, seed: int) -> tuple[tuple[Point, ...], str]:
    """The points with what their plans were evaluated on, and what stopped the search. Ctrl-C leaves those that have
    been evaluated by then."""
    problem_of = {id(point): problem for point, problem in searched.points}
    out: list[Point] = []
    try:
        for point in chosen:
            out.extend(certified(problem_of[id(point)], [point], seed=seed))
    except KeyboardInterrupt:
        if not out:
            raise
        return tuple(out), "interrupted"
    return tuple(out), searched.stopped_by


def _notes(method: Method, searched: Searched) -> Iterator[str]:
    """What was asked for and has no point."""
    if searched.left_out:
        counts = ", ".join(str(problem.cluster.gpus) for problem, _ in searched.left_out)
        yield f"left out: {counts} GPUs ({searched.left_out[0][1].what})"
    if searched.unsearched:
        counts = ", ".join(str(problem.cluster.gpus) for problem in searched.unsearched)
        yield f"not searched: {counts} GPUs ({searched.stopped_by})"
    missing = sorted({*(method.batch or ())} - {point.batch for point, _ in searched.points})
    if missing:
        why = "too large, or nothing divides" if searched.stopped_by == "complete" else searched.stopped_by
        yield f"no plan at batch {', '.join(f'{batch:,}' for batch in missing)} ({why})"


def _explain_nothing(problem: Problem, searched: Searched, method: Method) -> NoReturn:
    """Raise why a search has no points: it was stopped before the first, or nothing fits, or nothing divides."""
    where = f"{problem.cluster.gpus} × {problem.cluster.platform.name}"
    if searched.stopped_by == "interrupted":
        raise KeyboardInterrupt
    if searched.stopped_by != "complete":
        kind = searched.stopped_by.removesuffix(" limit").replace("node", "nodes")
        what = f"the {searched.stopped_by} ended the search before its first point"
        raise LimitReached(what, where=where, hint=f"allow more {kind}")
    if searched.nearest is not None:
        raise CapacityError(
            f"no plan found for {problem.name} fits at a batch size tried; the nearest: {searched.nearest.what}",
            needs_bytes=searched.nearest.needs_bytes,
            where=where,
            expected=searched.nearest.expected,
            hint="use more GPUs, devices with more memory, or a shorter context",
        )
    hint = "without a rule that was disabled there may be no plan at all" if method.disabled else ""
    if method.fix:
        hint = f"no plan may keep to what is fixed: {', '.join(method.fix)}"
    raise ValueRangeError(
        "no configuration runs at the batch sizes tried",
        where=where,
        expected="batch sizes that divide over the ranks",
        hint=hint,
    )
