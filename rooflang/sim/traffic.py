"""Who has to talk to whom: what a plan asks of the groups of ranks, whatever it costs."""

from __future__ import annotations

from dataclasses import dataclass

from rooflang.assumptions import Assumptions
from rooflang.ir.cut import OWNER, Cut, CutKind, Spec
from rooflang.ir.layout import Mode
from rooflang.place.plan import Plan

#: Axes of a mesh, by position.
Axes = tuple[int, ...]


def routed_axes(mode: Mode) -> Axes:
    """The axes over which a dispatch or combine moves rows inside the kernel."""
    return tuple(i for i, c in enumerate(mode.choices) if isinstance(c, Cut) and c.kind is CutKind.ROUTE)


def exchange_axes(mode: Mode, assumptions: Assumptions) -> Axes:
    """The axes over which the kernel exchanges a summary (sums of a norm, top-k candidates), so that the ranks of a
    group run it together."""
    return tuple(
        i
        for i, c in enumerate(mode.choices)
        if isinstance(c, Cut) and c.stat_bytes and (c.kind is CutKind.STAT or assumptions.partial_state)
    )


def owner_axes(written: Spec) -> Axes:
    """The axes of which only the first coordinate has a value, and so takes part in making it."""
    return tuple(axis for axis, state in enumerate(written) if state == OWNER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The sets of axes along which ranks communicate, the axes on which some value has one owner, and whether stages
    hand values on."""

    teams: tuple[Axes, ...]
    owners: Axes
    sends: bool

    @classmethod
    def of(cls, plan: Plan, assumptions: Assumptions) -> Traffic:
        """What a plan asks for."""
        teams: set[Axes] = set()
        owners = {axis for spec in plan.boundary.values() for axis in owner_axes(spec)}
        for block in plan.blocks.values():
            for mode in block.modes.values():
                teams |= {routed_axes(mode), exchange_axes(mode, assumptions)}
                owners |= set(owner_axes(mode.out))
            for path in (*block.paths.values(), *block.exits.values()):
                teams |= {step.axes for step in path if not step.free}
                owners |= {axis for step in path for axis in owner_axes(step.after)}
        return cls(teams=tuple(sorted(teams - {()})), owners=tuple(sorted(owners)), sends=len(plan.stages) > 1)
