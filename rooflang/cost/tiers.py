"""Leaves that lie in DRAM or on a drive: a kernel reads them, and appends to them, over the route to that memory.

What is remote is not read from HBM (the RoofLang paper, arXiv 2609.12551, equations 2 and 3: local bytes are memory
time, remote bytes are α and the slowest link of the route). Its time is listed under the lanes `dram read`, `dram
write` and so on, which overlap with each other and with the fabric levels that the kernel uses; nothing is staged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rooflang.cost.record import Cost
from rooflang.hw.cluster import Cluster
from rooflang.ir.layout import Mode
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import Num

if TYPE_CHECKING:
    from rooflang.cost.model import CostModel

#: The memory of a device, in which leaves rest unless a plan says otherwise.
HBM = "hbm"

#: Where the leaves of a kernel lie that are not in HBM: (number of the operand, tier).
Tiers = tuple[tuple[int, str], ...]


def lane(tier: str, direction: str) -> str:
    """The name under which the time to read from a tier, or write to it, is listed."""
    return f"{tier} {direction}"


def lane_bytes_per_s(cluster: Cluster, name: str, gpus: int) -> float:
    """The rate behind the time that is listed under a fabric level or under a `lane`, in stages of so many GPUs.

    The GPUs of a stage use a memory at once, and share what they share of its route. Another stage may use it at
    another time: that it comes in between is for the simulator to find, so that costs stay below what it finds.
    """
    tier, _, direction = name.partition(" ")
    if not direction:
        return cluster.level(name).bytes_per_s
    return cluster.tier_bytes_per_s(tier, gpus)[direction == "write"]


def with_tiers(cost: Cost, mode: Mode, tiers: Tiers, model: CostModel) -> Cost:
    """The cost of a kernel some of whose leaves lie in tiers: their bytes move from HBM to the lanes of those."""
    moved = _remote_bytes(mode, tiers, model)
    if not moved:
        return cost
    levels = dict(cost.levels_s)
    alpha_s, away = cost.alpha_s, 0.0
    for (tier, direction), size in moved.items():
        name = lane(tier, direction)
        levels[name] = levels.get(name, 0.0) + size / lane_bytes_per_s(model.cluster, name, model.mesh.gpus)
        if model.assumptions.remote_latency:
            alpha_s = np.maximum(alpha_s, model.cluster.tier(tier).latency_s)
        away = away + size
    memory_s = np.maximum(cost.memory_s - away / model.cluster.device.hbm_bytes_per_s, 0.0)
    return replace(cost, memory_s=memory_s, levels_s=levels, alpha_s=alpha_s)


def _remote_bytes(mode: Mode, tiers: Tiers, model: CostModel) -> Mapping[tuple[str, str], Num]:
    """Bytes that a kernel moves, by tier and direction."""
    op, kind, local = mode.op, op_kind(mode.op.kind), model.local_extents(mode)
    moved: dict[tuple[str, str], Num] = {}
    for index, tier in tiers:
        tensor, spec = op.operands[index], mode.operands[index]
        share = kind.read_fraction(op, index, local, model.sizes, model.assumptions)
        moved[tier, "read"] = moved.get((tier, "read"), 0.0) + model.bytes(tensor, spec) * share
        if kind.in_place == index:
            written = model.bytes(op.output, mode.out) * kind.write_fraction(op, local, model.sizes)
            moved[tier, "write"] = moved.get((tier, "write"), 0.0) + written
    return {key: size for key, size in moved.items() if np.any(size > 0)}
