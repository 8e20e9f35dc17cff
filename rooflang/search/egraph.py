"""Search by equality saturation: saturate the block kinds once, price them for every mesh and batch, extract, simulate.

First all meshes for all numbers of pipeline stages are looked at, at all batch sizes at once: that gives plans that fit
and lower bounds. Then, for each number of stages and each batch size that these plans do not rule out, the meshes whose
bound allows for more are extracted from in earnest, and the best plan is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rooflang.cost.tiers import HBM
from rooflang.errors import CapacityError
from rooflang.search.effort import EFFORT, Effort
from rooflang.search.evaluate import evaluate
from rooflang.search.fix import FREE, Fixed
from rooflang.search.part import Best, Looked, Way
from rooflang.search.point import Evaluated, Found, Point, nearer
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.workers import Workers
from rooflang.sim.result import Overlap

#: A plan that the simulation finds too large is extracted again, with so much more of the memory left free.
_SPARE = 1.02


@dataclass(kw_only=True)
class _Tally:
    """What a running search found, and how much it did."""

    evaluated: Evaluated = field(default_factory=Evaluated)
    points: list[Point] = field(default_factory=list)
    nearest: CapacityError | None = None

    def count(self, **more: int) -> None:
        self.evaluated = replace(
            self.evaluated, **{name: getattr(self.evaluated, name) + number for name, number in more.items()}
        )

    def add(self, best: Best) -> None:
        self.nearest = nearer(self.nearest, best.nearest)
        self.count(
            configurations=best.looked_at,
            screened_out=best.screened_out,
            impossible=best.impossible,
            extracted=best.extracted,
        )


def search_egraph(
    problem: Problem,
    degrees: Sequence[int],
    batches: Sequence[int],
    overlap: Overlap,
    disabled: frozenset[str],
    progress: Progress,
    *,
    fixed: Fixed = FREE,
    effort: Effort = EFFORT,
    every: bool = False,
) -> Found:
    """Search all configurations that keep to what is `fixed`; batch sizes ascend. It stops `complete`, by a limit of
    `progress`, by the `node limit`, or `interrupted`: Ctrl-C keeps what it has.

    Leaves leave HBM only where nothing fits with all of them there: for each batch size by itself if `every` one was
    asked for, otherwise if there is no plan at all.
    """
    tally = _Tally()
    way = Way(problem=problem, batches=tuple(batches), overlap=overlap, disabled=disabled, fixed=fixed, effort=effort)
    try:
        for tiers in _memories(problem, disabled):
            wanted = {*batches} - {point.batch for point in tally.points}
            if tiers != (HBM,) and (tally.nearest is None or not wanted or (tally.points and not every)):
                break
            _search(replace(way, tiers=tiers), degrees, wanted, every, progress, tally)
        stopped_by = progress.stopped_by
    except KeyboardInterrupt:
        stopped_by = "interrupted"
    return Found(points=tuple(tally.points), evaluated=tally.evaluated, stopped_by=stopped_by, nearest=tally.nearest)


def _memories(problem: Problem, disabled: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """The memories in which leaves may rest: HBM, then one more at a time, the nearest first."""
    names = tuple(tier.name for tier in problem.cluster.tiers)
    yield from (names[:count] for count in range(1, 2 if "insert_identity" in disabled else len(names) + 1))


def _search(
    way: Way, degrees: Sequence[int], wanted: Iterable[int], every: bool, progress: Progress, tally: _Tally
) -> None:
    """Search with leaves in the memories of `way`, for the batch sizes that are `wanted`."""
    with Workers(way, way.effort.jobs) as workers:
        looked: list[Looked] = []
        opened: list[int] = []
        for part in workers.open(degrees, progress):
            looked += part.looked
            opened.append(part.stages)
            if part.cut_short:
                progress.note("node limit")
            if progress.expired:
                return
        asked = [
            (at, stages, limit_s, workers.best(stages, at, limit_s, progress))
            for at, batch in enumerate(way.batches)
            if batch in wanted
            for stages in opened
            for limit_s in [_dominated_from(way, stages, at, looked, tally.points, every=every)]
        ]
        for at, stages, limit_s, result in asked:
            if progress.expired:
                return
            progress.say(f"batch {way.batches[at]}, pipeline {stages}")
            _settle(way, at, result(), partial(workers.best, stages, at, limit_s, progress), progress, tally)


def _settle(
    way: Way,
    at: int,
    best: Best,
    again: Callable[[float], Callable[[], Best]],
    progress: Progress,
    tally: _Tally,
) -> None:
    """Simulate the best plan for a batch size and a number of stages; if it is too large, ask for another one `again`,
    that leaves more of the memory free."""
    tally.add(best)
    for last in (False, True):
        if best.plan is None:
            return
        tally.count(simulated=1)
        try:
            point = evaluate(
                way.problem,
                best.plan,
                way.batches[at],
                overlap=way.overlap,
                bound_s=best.bound_s,
                bound_scope=_scope(way, progress),
            )
        except CapacityError as error:
            tally.count(out_of_memory=1)
            tally.nearest = nearer(tally.nearest, error)
            if not last:
                best = again(_SPARE * (error.needs_bytes - way.problem.cluster.device.hbm_bytes))()
            continue
        tally.points.append(point)
        return


def _scope(way: Way, progress: Progress) -> str:
    """What the bound of a point is a bound on."""
    scope = f"{way.fixed.scope(way.overlap)}, leaves in {' or '.join(tier.upper() for tier in way.tiers)}"
    if progress.stopped_by == "node limit":
        scope += ", in e-graphs cut off by the node limit"
    return scope


def _dominated_from(
    way: Way, stages: int, at: int, looked: Sequence[Looked], points: Sequence[Point], *, every: bool
) -> float:
    """The step time from which on a plan of that many stages for a batch size is beaten in throughput and interactivity
    alike: by what is known for other numbers of stages and, unless the best for `every` batch size is wanted, for other
    batch sizes; or by a point."""
    tokens, gpus, batch = way.problem.tokens, way.problem.cluster.gpus, way.batches[at]
    known = [
        (one.step_s * one.stages, one.step_s / way.batches[one.at])
        for one in looked
        if (one.at != at or one.stages != stages) and (one.at == at or not every)
    ]
    known += [
        (tokens / point.sim.tok_s_user, tokens / (point.sim.tok_s_gpu * gpus))
        for point in points
        if (point.batch != batch or point.pp != stages) and (point.batch == batch or not every)
    ]
    return min((max(latency_s / stages, batch * share_s) for latency_s, share_s in known), default=math.inf)
