"""What a plan will cost at many batch sizes at once, straight from the cost formulas: to decide what is worth
simulating.

On one stream a stage of a plan spends Σ C + Σ N once it has begun, so these sums are exact where no stage waits for
another one. Two halves of a batch take at least what either of their streams has work for (`rooflang.search.halves`).
Numbers shown to users still come from the simulation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.ir.tensor import Role
from rooflang.place.lower import PlacedGraph
from rooflang.place.storage import storage, stored
from rooflang.sim.costs import LiftedCosts
from rooflang.sim.result import Overlap, waves
from rooflang.sim.schedule import BATCH, stream_work_s

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """Per batch size: step time of the slowest stage (infinite where extents do not divide), for two halves of a batch
    a lower bound on it, and a lower bound on peak memory."""

    step_s: Array
    least_bytes: Array


def screen(placed: PlacedGraph, cost: CostModel, overlap: Overlap) -> Screened:
    """Screen a placed graph under a cost model whose batch is an array."""
    shape = np.shape(cost.sizes.get("batch", 1))
    stages = len(placed.plan.stages)
    local, exposed = np.zeros((stages, *shape)), np.zeros((stages, *shape))
    parts = waves(overlap)
    part = replace(cost, sizes={**cost.sizes, BATCH: cost.sizes[BATCH] / parts}) if parts > 1 else cost
    known = LiftedCosts(part)
    for op in placed.ops:
        found = known.of(op)
        both_s = found.local_s, found.exposed_s
        own_s, waits_s = stream_work_s(*both_s) if parts > 1 else both_s
        local[op.stage] += own_s
        exposed[op.stage] += waits_s
    step = local + exposed if overlap == "none" else np.maximum(local, exposed) * parts
    return Screened(step_s=step.max(axis=0), least_bytes=_least_bytes(placed, cost, part, shape).max(axis=0))


def _least_bytes(placed: PlacedGraph, cost: CostModel, part: CostModel, shape: tuple[int, ...]) -> Array:
    """What a rank of each stage holds at least, in whatever order its operators run, shape (stages, …): its residents
    and, at one time, all that one operator reads and writes, of a part of the batch; at the end, all that the step
    leaves behind of that."""
    stages = len(placed.plan.stages)
    lies = storage(placed, receive_buffers=cost.assumptions.receive_buffers)
    size = {value: part.bytes(tensor, value[1]) for value, tensor in stored(placed, lies).items()}
    largest, resident = np.zeros((stages, *shape)), np.zeros((stages, *shape))
    together = [{lies[value] for value in (*op.reads, op.write)} for op in placed.ops]
    for stage in range(stages):
        for values in (*together, {lies[value] for value in placed.outputs}):
            held = [size[value] for value in values if value is not None and value[2] == stage]
            largest[stage] = np.maximum(largest[stage], sum(held))
    for leaf in placed.residents:
        if leaf.tier == "hbm":
            waves = stages if leaf.tensor.role in (Role.KV_CACHE, Role.STATE) else 1
            resident[leaf.stage] += cost.bytes(leaf.tensor, leaf.spec) * waves
    return resident + largest
