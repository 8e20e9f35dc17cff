"""Search by equality saturation: saturate the block kinds once, price them for every mesh and batch, extract, simulate.

For each number of pipeline stages and each batch size, every mesh is a configuration. The dual bounds its step time
from below; a configuration that cannot beat what was found for its batch size is cut off there. What is extracted is
validated and simulated before it is returned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.eqsat import Limits, StopReason, saturate_all
from rooflang.errors import CapacityError, LimitReached, PlacementError
from rooflang.extractors.bounds import quick_bounds_s
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.stages import extract
from rooflang.extractors.task import Extraction, Objective, Stages, Task
from rooflang.hw import Mesh
from rooflang.place.grid import balanced, layer_labels, partition
from rooflang.search.effort import EFFORT, Effort
from rooflang.search.evaluate import evaluate
from rooflang.search.fix import FREE, Fixed
from rooflang.search.point import Evaluated, Found, Point, nearer
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.validate import validate
from rooflang.sim.result import Overlap

#: Longest time for one extraction, where there are many; its incumbent and bound are used then.
EXTRACTION_S = 6.0

#: The same where a single batch size is asked for: what is saved at the others may be spent on it.
LONE_EXTRACTION_S = 20.0

_OBJECTIVE: dict[Overlap, Objective] = {"perfect": "max", "none": "sum"}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One mesh for one number of stages, with the costs of all its e-nodes, and a quick lower bound on the objective,
    at all batch sizes."""

    sizes: tuple[int, ...]
    stages: Stages
    costed: CostedGraph
    quick_s: FloatArray

    @property
    def name(self) -> str:
        mesh = "×".join(map(str, self.sizes)) or "1"
        return f"mesh {mesh}, pipeline {len(self.stages)}"


@dataclass(kw_only=True)
class _Tally:
    """Counts of a running search, and what it keeps to; `tiers` are the memories in which leaves may rest."""

    fixed: Fixed
    effort: Effort
    tiers: tuple[str, ...] = (HBM,)
    configurations: int = 0
    screened_out: int = 0
    impossible: int = 0
    extracted: int = 0
    simulated: int = 0
    out_of_memory: int = 0
    points: list[Point] = field(default_factory=list)
    nearest: CapacityError | None = None


def configurations(
    problem: Problem,
    stages: int,
    batches: Sequence[int],
    overlap: Overlap,
    disabled: frozenset[str],
    progress: Progress,
    fixed: Fixed = FREE,
    effort: Effort = EFFORT,
    tiers: tuple[str, ...] = (HBM,),
) -> list[Configuration]:
    """Every mesh of at most two axes for a number of stages, priced at all batch sizes in one call each, leaves in any
    of the memories `tiers`; at a limit those that are priced by then."""
    out: list[Configuration] = []
    layers = fixed.partition or balanced(len(layer_labels(problem.blocks)), stages)
    labels = partition(problem.blocks, layers)
    for space in fixed.spaces(problem, stages):
        sizes = space.sizes
        if progress.expired:
            break
        progress.say(f"saturating and pricing mesh {sizes}, pipeline {stages}")
        limits = Limits(nodes=effort.nodes)
        saturated = saturate_all(problem.blocks, len(sizes), disabled=disabled, limits=limits)
        if any(block.stats.stop is not StopReason.SATURATED for block in saturated.values()):
            progress.note("node limit")
        frozen = space.menus(saturated)
        cost = problem.cost(Mesh.lay(problem.cluster, sizes, stages=stages), np.array(batches, np.float64))
        try:
            costed = CostedGraph.of(problem.blocks, frozen, cost, tiers=tiers)
        except PlacementError:
            continue  # no layout suits all blocks: with some rules disabled that happens
        quick_s = quick_bounds_s(Task(costed=costed, at=0, stages=labels, objective=_OBJECTIVE[overlap]))
        out.append(Configuration(sizes=sizes, stages=labels, costed=costed, quick_s=quick_s))
    return out


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
    tally = _Tally(fixed=fixed, effort=effort)
    patience_s = max(EXTRACTION_S, LONE_EXTRACTION_S / len(batches))
    try:
        for tally.tiers in _memories(problem, disabled):
            wanted = {*batches} - {point.batch for point in tally.points}
            if tally.tiers != (HBM,) and (tally.nearest is None or not wanted or (tally.points and not every)):
                break
            for stages in degrees:
                mine = configurations(problem, stages, batches, overlap, disabled, progress, fixed, effort, tally.tiers)
                full: list[int] = []
                for at, batch in enumerate(batches):
                    if progress.expired:
                        break
                    if batch not in wanted or _hopeless(batch, full, problem.cluster.gpus // stages):
                        continue
                    beside = tally.points if tally.tiers != (HBM,) and not every else _of_batch(tally.points, batch)
                    limit_s = _dominated_from(problem, batch, stages, beside)
                    if _search_batch(problem, mine, at, batch, overlap, limit_s, patience_s, progress, tally) == "full":
                        full.append(batch)
        stopped_by = progress.stopped_by
    except KeyboardInterrupt:
        stopped_by = "interrupted"
    evaluated = Evaluated(
        configurations=tally.configurations,
        screened_out=tally.screened_out,
        impossible=tally.impossible,
        extracted=tally.extracted,
        simulated=tally.simulated,
        out_of_memory=tally.out_of_memory,
    )
    return Found(points=tuple(tally.points), evaluated=evaluated, stopped_by=stopped_by, nearest=tally.nearest)


def _memories(problem: Problem, disabled: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """The memories in which leaves may rest: HBM, then one more at a time, the nearest first."""
    names = tuple(tier.name for tier in problem.cluster.tiers)
    yield from (names[:count] for count in range(1, 2 if "insert_identity" in disabled else len(names) + 1))


def _of_batch(points: Sequence[Point], batch: int) -> list[Point]:
    return [point for point in points if point.batch == batch]


def _hopeless(batch: int, full: Sequence[int], ranks: int) -> bool:
    """Does a batch size not fit because a smaller one did not? Only if that one divides over as many of the ranks:
    7 requests on each of 8 GPUs may be too much where 8 are one for each."""
    return any(math.gcd(smaller, ranks) % math.gcd(batch, ranks) == 0 for smaller in full)


def _search_batch(
    problem: Problem,
    mine: Sequence[Configuration],
    at: int,
    batch: int,
    overlap: Overlap,
    limit_s: float,
    patience_s: float,
    progress: Progress,
    tally: _Tally,
) -> Literal["found", "full", "impossible", "dominated"]:
    """Extract from every mesh for one number of stages and one batch size what is faster than `limit_s`; simulate the
    best."""
    best: Extraction | None = None
    bound_s, full, cut_off, unsure = float("inf"), False, False, False
    for config in mine:
        tally.configurations += 1
        progress.say(f"batch {batch}, {config.name}")
        task = Task(costed=config.costed, at=at, stages=config.stages, objective=_OBJECTIVE[overlap])
        cutoff_s = limit_s if best is None else min(limit_s, best.value_s)
        quick_s = float(config.quick_s[at])
        if cutoff_s <= quick_s < float("inf"):
            tally.screened_out += 1
            bound_s, cut_off = min(bound_s, quick_s), True
            continue
        try:
            found = extract(
                task,
                time_limit_s=min(patience_s, progress.remaining_s),
                gap=tally.effort.gap,
                cutoff_s=cutoff_s,
                repartition=tally.fixed.partition is None,
            )
        except CapacityError as error:
            full, tally.nearest = True, nearer(tally.nearest, error)
            tally.impossible += 1
            continue
        except PlacementError:
            tally.impossible += 1
            continue
        except LimitReached:
            bound_s, unsure = min(bound_s, quick_s), True  # it may have had the best plan of all
            tally.impossible += 1
            continue
        bound_s = min(bound_s, found.bound_s)
        if found.status == "cut off":
            tally.screened_out += 1
            cut_off = True
            continue
        tally.extracted += 1
        if best is None or found.value_s < best.value_s:
            best = found
    if best is None:
        return "dominated" if cut_off else "full" if full and not unsure else "impossible"
    return _simulate(problem, best, batch, bound_s, overlap, progress, tally)


def _simulate(
    problem: Problem,
    best: Extraction,
    batch: int,
    bound_s: float,
    overlap: Overlap,
    progress: Progress,
    tally: _Tally,
) -> Literal["found", "full"]:
    plan = best.plan("e-graph")
    validate(plan, problem.blocks, problem.cluster, seed=tally.effort.seed)
    tally.simulated += 1
    scope = f"{tally.fixed.scope(overlap)}, leaves in {' or '.join(tier.upper() for tier in tally.tiers)}"
    if progress.stopped_by == "node limit":
        scope += ", in e-graphs cut off by the node limit"
    try:
        tally.points.append(evaluate(problem, plan, batch, overlap=overlap, bound_s=bound_s, bound_scope=scope))
    except CapacityError as error:
        tally.out_of_memory += 1
        tally.nearest = nearer(tally.nearest, error)
        return "full"
    return "found"


def _dominated_from(problem: Problem, batch: int, stages: int, points: Sequence[Point]) -> float:
    """The step time from which on a plan of that many stages for a batch size is beaten by one of the points."""
    tokens, gpus = problem.tokens, problem.cluster.gpus
    return min(
        (max(tokens / (p.sim.tok_s_user * stages), batch * tokens / (p.sim.tok_s_gpu * gpus)) for p in points),
        default=float("inf"),
    )
