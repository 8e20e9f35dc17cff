"""Leaves that lie in DRAM or on a drive: a kernel reads them, and appends to them, over the route to that memory.

What is remote is not read from HBM (the RoofLang paper, arXiv 2609.12551, equations 2 and 3: local bytes are memory
time, remote bytes are α and the slowest link of the route). The lanes `(tier, "read")` and `(tier, "write")` carry it,
and share their links with whatever else uses them, such as the PCIe link into a GPU with its NIC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.hw.cluster import Cluster
from rooflang.ir.cut import Cut
from rooflang.ir.layout import Mode
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import RESIDENT_ROLES, Num
from rooflang.place.lower import PlacedGraph
from rooflang.place.plan import BlockPlan
from rooflang.sim.fabric import Lane

HBM = "hbm"


def lane_name(lane: Lane) -> str:
    """What the time of a lane is listed under: the name of a fabric level, `dram read`, `nvme write`."""
    name, direction = lane
    return name if direction in ("out", "in") else f"{name} {direction}"


def lane_bytes_per_s(cluster: Cluster, name: str) -> float:
    """The rate behind the time that is listed under the name of a lane."""
    tier, _, direction = name.partition(" ")
    if not direction:
        return cluster.level(name).bytes_per_s
    found = cluster.tier(tier)
    return found.read_bytes_per_s if direction == "read" else found.write_bytes_per_s


def tier_lanes(placed: PlacedGraph) -> tuple[Lane, ...]:
    """The lanes to the memories in which leaves of the plan lie, beside HBM."""
    tiers = {tier for block in placed.plan.blocks.values() for tier in block.tiers.values()} - {HBM}
    return tuple((tier, direction) for tier in sorted(tiers) for direction in ("read", "write"))


def with_tiers(cost: Cost, mode: Mode, plan: BlockPlan, model: CostModel) -> Cost:
    """The cost of a kernel whose leaves lie where the plan says: remote bytes move from HBM to their lanes."""
    moved = _remote_bytes(mode, plan, model)
    if not moved:
        return cost
    levels = dict(cost.levels_s)
    alpha_s, local = cost.alpha_s, 0.0
    for (name, direction), size in moved.items():
        lane = lane_name((name, direction))
        levels[lane] = levels.get(lane, 0.0) + size / lane_bytes_per_s(model.cluster, lane)
        alpha_s = np.maximum(alpha_s, model.cluster.tier(name).latency_s)
        local = local + size
    memory_s = np.maximum(cost.memory_s - local / model.cluster.device.hbm_bytes_per_s, 0.0)
    return replace(cost, memory_s=memory_s, levels_s=levels, alpha_s=alpha_s)


def _remote_bytes(mode: Mode, plan: BlockPlan, model: CostModel) -> Mapping[Lane, Num]:
    """Bytes that a kernel moves on each lane."""
    op, kind = mode.op, op_kind(mode.op.kind)
    moved: dict[Lane, Num] = {}
    for index, (tensor, spec) in enumerate(zip(op.operands, mode.operands, strict=True)):
        tier = plan.tiers.get(plan.source(tensor.name), HBM)
        if tensor.role not in RESIDENT_ROLES or tier == HBM:
            continue
        local = _local(mode, model)
        share = kind.read_fraction(op, index, local, model.sizes, model.assumptions)
        moved[tier, "read"] = moved.get((tier, "read"), 0.0) + model.bytes(tensor, spec) * share
        if kind.in_place == index:
            written = model.bytes(op.output, mode.out) * kind.write_fraction(op, local, model.sizes)
            moved[tier, "write"] = moved.get((tier, "write"), 0.0) + written
    return {lane: size for lane, size in moved.items() if np.any(size > 0)}


def _local(mode: Mode, model: CostModel) -> Mapping[str, Num]:
    """Loop extents of a mode on one rank."""
    parts: dict[str, list[int]] = {}
    for axis, choice in zip(model.mesh.axes, mode.choices, strict=True):
        for label in choice.loops if isinstance(choice, Cut) else ():
            parts.setdefault(label, []).append(axis.size)
    return model.local({label: math.prod(sizes) for label, sizes in parts.items()})
