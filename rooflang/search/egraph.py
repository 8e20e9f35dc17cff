"""Search by equality saturation: saturate the block kinds once, price them for every mesh and batch, extract, simulate.

First all meshes for all numbers of pipeline stages are looked at, at all batch sizes at once: that gives lower bounds
and plans that fit, those of the paper's grid among them. Then, for each number of stages and each batch size that these
plans do not rule out, the meshes whose bound allows for more are extracted from in earnest, and the best plan is
simulated. Where a limit or Ctrl-C comes before that, or a look is all that was asked for, the plan looked at is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from rooflang.errors import CapacityError
from rooflang.place.plan import Plan
from rooflang.search.effort import EFFORT, Effort
from rooflang.search.fix import FREE, Fixed
from rooflang.search.looks import Looked
from rooflang.search.part import Best, Way
from rooflang.search.point import Found, Point, nearer
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.tally import Tally
from rooflang.search.workers import Opened, Workers
from rooflang.sim.result import ROUNDING, Overlap

#: A plan that the simulation finds too large is extracted again, with so much more of the memory left free.
_SPARE = 1.02


@dataclass(kw_only=True)
class _Tally(Tally):
    def add(self, best: Best) -> None:
        """Count the work of a search for one batch size and number of stages."""
        self.nearest = nearer(self.nearest, best.nearest)
        self.count(
            configurations=best.looked_at,
            screened_out=best.screened_out,
            impossible=best.impossible,
            extracted=best.extracted,
        )

    def of(self, way: Way, plan: Plan, at: int, bound_s: float, scope: str) -> Point:
        """Simulate a plan at a batch size by number, as `simulate` does."""
        return self.simulate(way.problem, plan, way.batches[at], way.overlap, bound_s=bound_s, scope=scope)


@dataclass(kw_only=True)
class _Looks:
    """What a first look found: its parts; the plans that nobody went on from, and the pairs (batch size by number,
    stages) that have been asked for in earnest."""

    parts: list[Opened] = field(default_factory=list)
    left: dict[tuple[int, int], Looked] = field(default_factory=dict)
    asked: set[tuple[int, int]] = field(default_factory=set)

    def add(self, part: Opened) -> None:
        self.parts.append(part)
        self.left |= {(one.at, one.stages): one for one in part.looked}

    @property
    def found(self) -> list[Looked]:
        return [one for part in self.parts for one in part.looked]

    def part(self, stages: int, at: int) -> Opened:
        """The part of so many stages with a batch size."""
        return next(part for part in self.parts if part.stages == stages and at in part.ats)


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
        for number, (tiers, gathered) in enumerate(_rests(problem, disabled, overlap)):
            done = {point.batch for point in tally.points}
            wanted = [at for at, batch in enumerate(batches) if batch not in done]
            if number and (tally.nearest is None or not wanted or (tally.points and not every)):
                break
            _search(replace(way, tiers=tiers, gathered=gathered), degrees, wanted, every, progress, tally)
        stopped_by = progress.stopped_by
    except KeyboardInterrupt:
        stopped_by = "interrupted"
    return tally.found(stopped_by)


def _rests(problem: Problem, disabled: frozenset[str], overlap: Overlap) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The memories in which leaves may rest, and whether weights may be gathered where they are used: HBM, as they are
    read; then cut, too, and in one more memory at a time, the nearest first. Two halves of a batch would each gather
    them: there they are not."""
    names = tuple(tier.name for tier in problem.cluster.tiers)
    gathered = overlap != "two-batch" and "merge_gather_broadcast" not in disabled
    yield names[:1], False
    far = range(2, 2 if "insert_identity" in disabled else len(names) + 1)
    yield from ((names[:count], gathered) for count in far or [1] * gathered)


def _search(
    way: Way, degrees: Sequence[int], wanted: Collection[int], every: bool, progress: Progress, tally: _Tally
) -> None:
    """Search with leaves in the memories of `way`, for the batch sizes (by number) that are `wanted`."""
    looks = _Looks()
    try:
        with Workers(way, way.effort.jobs) as workers:
            for part in workers.open(degrees, progress):
                looks.add(part)
                if part.cut_short:
                    progress.note("node limit")
            if not all(part.whole for part in looks.parts):
                progress.note("memory limit")  # of one of the processes; that of time has struck here, too
            elif way.effort.depth == "full":
                _refine(way, workers, looks, wanted, every, progress, tally)
            elif not looks.left:  # to find what fits after all, or what is missing
                _refine(way, workers, looks, list(wanted)[:1], every, progress, tally)
    except KeyboardInterrupt:
        _keep(way, looks, wanted, every, progress, tally)
        raise
    _keep(way, looks, wanted, every, progress, tally)


def _refine(
    way: Way,
    workers: Workers,
    looks: _Looks,
    wanted: Collection[int],
    every: bool,
    progress: Progress,
    tally: _Tally,
) -> None:
    """Go on from what was looked at, until a limit: first with the fewest stages, whose points say better than a look
    from where on more of them are beaten."""
    fewest, *more = dict.fromkeys(part.stages for part in looks.parts)
    limits_s: dict[tuple[int, int], float] = {}
    for degrees in ((fewest,), tuple(more)):
        if progress.expired:
            return
        points = tuple(tally.points)
        jobs = [
            (at, stages, limit_s, workers.best(stages, at, limit_s, progress))
            for at in wanted
            for stages in degrees
            for limit_s in [_dominated_from(way, stages, at, looks.found, points, every=every)]
        ]
        for at, stages, limit_s, result in jobs:
            if progress.expired:
                return
            progress.say(f"batch {way.batches[at]}, pipeline {stages}")
            best = result()
            looks.asked.add((at, stages))
            known = looks.left.get((at, stages))
            point = _settle(way, at, best, known, partial(workers.best, stages, at, limit_s, progress), progress, tally)
            if point is not None:
                tally.points.append(point)
                looks.left.pop((at, stages), None)
            limits_s[at, stages] = limit_s
    for key, limit_s in limits_s.items():
        known = looks.left.get(key)
        if known is not None and known.step_s >= limit_s:
            del looks.left[key]  # what is known of the others beats it


def _settle(
    way: Way,
    at: int,
    best: Best,
    known: Looked | None,
    again: Callable[[float], Callable[[], Best]],
    progress: Progress,
    tally: _Tally,
) -> Point | None:
    """Simulate the best plan for a batch size and a number of stages; if it is too large, ask for another one `again`,
    that leaves more of the memory free. Should a plan be `known` that is faster, it stays."""
    tally.add(best)
    point: Point | None = None
    for last in (False, True):
        if best.plan is None:
            return None
        try:
            point = tally.of(way, best.plan, at, best.bound_s, _scope(way, progress))
        except CapacityError as error:
            if not last:
                best = again(_SPARE * (error.needs_bytes - way.problem.cluster.device.hbm_bytes))()
            continue
        break
    if point is None or known is None or known.step_s >= point.sim.step_s * (1.0 - ROUNDING):
        return point
    return tally.of(way, known.plan, at, min(best.bound_s, known.step_s), _scope(way, progress))


def _keep(way: Way, looks: _Looks, wanted: Collection[int], every: bool, progress: Progress, tally: _Tally) -> None:
    """Simulate the plans that nobody went on from: for each batch size the fastest, and those that nothing beats."""
    for at, part in ((at, part) for at in wanted for part in looks.parts):
        if at in part.ats and (at, part.stages) not in looks.asked:
            possible = part.possible[at]
            tally.count(configurations=part.meshes, screened_out=possible, impossible=part.meshes - possible)
    fastest = {at: min(one.step_s for one in looks.found if one.at == at) for at in {at for at, _ in looks.left}}
    for (at, stages), one in sorted(looks.left.items()):
        beaten_s = _dominated_from(way, stages, at, looks.found, tally.points, every=every)
        if at not in wanted or (one.step_s >= beaten_s and one.step_s > fastest[at]):
            continue
        progress.say(f"simulating batch {way.batches[at]}, pipeline {stages}")
        part = looks.part(stages, at)
        # A plan that lowers to less than its blocks add up to lowers its bound, as in `extractors.result`.
        bound_s = min(part.bounds_s[at], one.step_s)
        with suppress(CapacityError):
            tally.points.append(tally.of(way, one.plan, at, bound_s, _scope(way, progress, part)))


def _scope(way: Way, progress: Progress, part: Opened | None = None) -> str:
    """What the bound of a point is a bound on."""
    scope = f"{way.fixed.scope(way.overlap)}, leaves in {' or '.join(tier.upper() for tier in way.tiers)}"
    if way.gathered:
        scope += ", weights as read or gathered"
    if progress.stopped_by == "node limit":
        scope += ", in e-graphs cut off by the node limit"
    if part is not None and not part.whole:
        scope += f", of the {part.meshes} meshes that were looked at"
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
