"""The lanes `(tier, "read")` and `(tier, "write")` to DRAM and to drives, in which leaves may lie (`cost.tiers`): they
share their links with whatever else uses them, such as the PCIe link into a GPU with its NIC."""

from __future__ import annotations

from rooflang.cost.tiers import HBM, lane
from rooflang.place.plan import Plan
from rooflang.sim.fabric import Lane


def lane_name(found: Lane) -> str:
    """What the time of a lane is listed under: the name of a fabric level, `dram read`, `nvme write`."""
    name, direction = found
    return name if direction in ("out", "in") else lane(name, direction)


def tier_lanes(plan: Plan) -> tuple[Lane, ...]:
    """The lanes to the memories in which leaves of a plan lie, beside HBM."""
    tiers = {tier for block in plan.blocks.values() for tier in block.tiers.values()} - {HBM}
    return tuple((tier, direction) for tier in sorted(tiers) for direction in ("read", "write"))
