"""What a plan will cost at many batch sizes at once, straight from the cost formulas: to decide what is worth
simulating.

On one stream the simulation of a plan spends Σ C + Σ N, so these sums are exact there; numbers shown to users still
come from the simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.ir.tensor import Role
from rooflang.place.lower import PlacedGraph
from rooflang.sim.result import Overlap

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """Per batch size: step time of the slowest stage (infinite where extents do not divide) and a lower bound on peak
    memory."""

    step_s: Array
    least_bytes: Array

    def worth(self, capacity_bytes: float) -> Array:
        """Mask of batch sizes that may run and may fit."""
        return np.asarray(np.isfinite(self.step_s) & (self.least_bytes <= capacity_bytes))


def screen(placed: PlacedGraph, cost: CostModel, overlap: Overlap) -> Screened:
    """Screen a placed graph under a cost model whose batch is an array."""
    shape = np.shape(cost.sizes.get("batch", 1))
    stages = len(placed.plan.stages)
    local, exposed = np.zeros((stages, *shape)), np.zeros((stages, *shape))
    live = np.zeros((stages, *shape))
    memo: dict[object, Cost] = {}
    for op in placed.ops:
        if op.kind == "send":
            continue
        key: object = (op.mode.op.name, op.mode.choices) if op.mode else (op.tensor, op.transfer)
        if key not in memo:
            memo[key] = cost.mode(op.mode) if op.mode else cost.transfer(op.tensor, op.transfer)  # type: ignore[arg-type]
        found = memo[key]
        local[op.stage] += found.local_s
        exposed[op.stage] += found.exposed_s
        live[op.stage] = np.maximum(live[op.stage], found.live_bytes if op.mode else 0.0)
    for leaf in placed.residents:
        if leaf.tier == "hbm":
            waves = stages if leaf.tensor.role in (Role.KV_CACHE, Role.STATE) else 1
            live[leaf.stage] += cost.bytes(leaf.tensor, leaf.spec) * waves
    step = np.maximum(local, exposed) if overlap == "perfect" else local + exposed
    return Screened(step_s=step.max(axis=0), least_bytes=live.max(axis=0))
