"""Sweep of the paper's grid: every (DP, CP, PP), every batch size; screened by cost, simulated where it can matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.errors import CapacityError, PlacementError
from rooflang.place.grid import grid_plan
from rooflang.place.lower import lower
from rooflang.place.plan import Plan
from rooflang.search.evaluate import evaluate
from rooflang.search.point import Evaluated, Point
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.screen import screen
from rooflang.search.sizes import grid_shapes
from rooflang.sim.result import Overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plan at a batch size with its screened step time."""

    plan: Plan
    batch: int
    step_s: float


def grid_candidates(
    problem: Problem, degrees: Sequence[int], batches: Sequence[int], overlap: Overlap, progress: Progress
) -> tuple[list[Candidate], int]:
    """All grid plans at all batch sizes that divide and may fit, and how many configurations were looked at."""
    out: list[Candidate] = []
    looked = 0
    sizes = np.array(batches, np.float64)
    for dp, cp, pp in grid_shapes(problem, degrees):
        quantum = dp * cp if problem.stage == "decode" else dp
        try:
            plan = grid_plan(problem.graph.resized(batch=quantum), problem.cluster, dp=dp, cp=cp, pp=pp)
        except PlacementError:
            continue
        progress.say(f"grid dp{dp} cp{cp} pp{pp}")
        found = screen(lower(plan, problem.blocks), problem.cost(plan.mesh, sizes), overlap)
        worth = found.worth(problem.cluster.device.hbm_bytes)
        looked += len(batches)
        for index in np.flatnonzero(worth & (sizes % quantum == 0)):
            out.append(Candidate(plan=plan, batch=batches[index], step_s=float(found.step_s[index])))
    return out, looked


def search_grid(
    problem: Problem, degrees: Sequence[int], batches: Sequence[int], overlap: Overlap, progress: Progress
) -> tuple[list[Point], Evaluated]:
    """Simulate, per batch size, the candidates that no other screened candidate beats in both throughput and
    interactivity."""
    candidates, looked = grid_candidates(problem, degrees, batches, overlap, progress)
    points: list[Point] = []
    full = 0
    simulated = 0
    for candidate in _undominated(candidates):
        progress.say(f"simulating batch {candidate.batch} {candidate.plan.origin}")
        simulated += 1
        try:
            points.append(evaluate(problem, candidate.plan, candidate.batch, overlap=overlap))
        except CapacityError:
            full += 1
    evaluated = Evaluated(
        configurations=looked,
        screened_out=looked - simulated,
        simulated=simulated,
        out_of_memory=full,
    )
    return points, evaluated


def _undominated(candidates: list[Candidate]) -> list[Candidate]:
    """Per batch size the candidates by step time, those out that are no faster per stage pass and have no fewer
    stages."""
    out: list[Candidate] = []
    by_batch: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        by_batch.setdefault(candidate.batch, []).append(candidate)
    for batch in sorted(by_batch):
        best_user = float("inf")
        for candidate in sorted(by_batch[batch], key=lambda c: (c.step_s, len(c.plan.stages))):
            latency = candidate.step_s * len(candidate.plan.stages)
            if latency < best_user:
                out.append(candidate)
                best_user = latency
    return out
