"""Sweep of the paper's grid: every (DP, CP, PP), every batch size; screened by cost, simulated where it can matter."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from rooflang.errors import CapacityError, PlacementError
from rooflang.place.grid import SEQ, grid_plan
from rooflang.place.lower import lower
from rooflang.place.plan import Plan
from rooflang.search.fix import FREE, Fixed
from rooflang.search.point import Found
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.screen import screen
from rooflang.search.tally import Tally
from rooflang.sim.result import ROUNDING, Overlap, waves


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plan at a batch size with its screened step time and a lower bound on its memory; for two halves of a batch the
    time is a lower bound, too."""

    plan: Plan
    batch: int
    step_s: float
    least_bytes: float

    @property
    def latency_s(self) -> float:
        """What a token takes through all stages."""
        return self.step_s * len(self.plan.stages)


@dataclass(kw_only=True)
class _Sweep(Tally):
    candidates: list[Candidate] = field(default_factory=list)

    def beats(self, candidate: Candidate) -> bool:
        """Is a point of its batch size as good in throughput and interactivity?"""
        return any(
            point.batch == candidate.batch
            and point.sim.step_s <= candidate.step_s * (1.0 + ROUNDING)
            and point.sim.step_s * point.pp <= candidate.latency_s * (1.0 + ROUNDING)
            for point in self.points
        )


def search_grid(
    problem: Problem,
    degrees: Sequence[int],
    batches: Sequence[int],
    overlap: Overlap,
    progress: Progress,
    *,
    fixed: Fixed = FREE,
) -> Found:
    """Simulate, per batch size, the plans that no plan which fits beats in both throughput and interactivity, and that
    keep to what is `fixed` (a shape, a partition).

    It stops `complete`, by a limit of `progress`, or `interrupted`: Ctrl-C keeps what it has.
    """
    sweep = _Sweep()
    try:
        _screen(problem, degrees, batches, overlap, progress, sweep, fixed)
        capacity = problem.cluster.device.hbm_bytes
        worth = [c for c in sweep.candidates if c.least_bytes <= capacity]
        if not worth and sweep.candidates:
            worth = [min(sweep.candidates, key=lambda c: c.least_bytes)]  # to say what is missing
        for candidate in sorted(worth, key=lambda c: (c.batch, c.step_s, c.latency_s)):
            if progress.expired:
                break
            if not sweep.beats(candidate):
                progress.say(f"simulating batch {candidate.batch} {candidate.plan.origin}")
                with suppress(CapacityError):
                    sweep.points.append(sweep.simulate(problem, candidate.plan, candidate.batch, overlap))
        stopped_by = progress.stopped_by
    except KeyboardInterrupt:
        stopped_by = "interrupted"
    sweep.count(screened_out=len(sweep.candidates) - sweep.evaluated.simulated)
    return sweep.found(stopped_by)


def grid_candidates(
    problem: Problem, degrees: Sequence[int], batches: Sequence[int], overlap: Overlap, progress: Progress
) -> list[Candidate]:
    """Every plan of the grid at every batch size that divides and may fit."""
    sweep = _Sweep()
    _screen(problem, degrees, batches, overlap, progress, sweep)
    return [c for c in sweep.candidates if c.least_bytes <= problem.cluster.device.hbm_bytes]


def _screen(
    problem: Problem,
    degrees: Sequence[int],
    batches: Sequence[int],
    overlap: Overlap,
    progress: Progress,
    sweep: _Sweep,
    fixed: Fixed = FREE,
) -> None:
    """Collect every plan at every batch size that divides."""
    sizes = np.array(batches, np.float64)
    for dp, cp, pp in fixed.shapes(problem, degrees):
        if progress.expired:
            return
        progress.say(f"grid dp{dp} cp{cp} pp{pp}")
        quantum = dp if SEQ in problem.graph.sizes else dp * cp
        sweep.count(configurations=len(batches))
        try:
            graph = problem.graph.resized(batch=quantum) if problem.has_batch else problem.graph
            layers, blocks = fixed.partition, problem.blocks
            plan = grid_plan(graph, problem.cluster, dp=dp, cp=cp, pp=pp, partition_layers=layers, blocks=blocks)
        except PlacementError:
            sweep.count(impossible=len(batches))
            continue
        cost = problem.cost(plan.mesh, sizes if problem.has_batch else None)
        found = screen(lower(plan, problem.blocks), cost, overlap)
        parts = quantum * waves(overlap)
        runs = np.isfinite(found.step_s) & ((sizes % parts == 0) | (not problem.has_batch))
        sweep.count(impossible=len(batches) - int(runs.sum()))
        for index in np.flatnonzero(runs).tolist():
            step_s, least = (float(np.broadcast_to(x, sizes.shape)[index]) for x in (found.step_s, found.least_bytes))
            sweep.candidates.append(Candidate(plan=plan, batch=batches[index], step_s=step_s, least_bytes=least))
