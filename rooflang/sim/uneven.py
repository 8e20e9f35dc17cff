"""Extents that do not divide: each rank holds whole elements, the last ranks fewer, and costs what it holds.

Shards are those of `rooflang.ir.shards.shard_sizes`, over all axes that cut a label anywhere in the plan; each axis
owns one digit of the shard's number, so that a value cut along some of the axes only holds the shards of all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from math import inf, lcm, prod

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.cost.tiers import Tiers
from rooflang.errors import PlacementError
from rooflang.ir.cut import STATES, Cut, Spec
from rooflang.ir.layout import Mode
from rooflang.ir.shards import shard_sizes
from rooflang.ir.tensor import Num
from rooflang.place.lower import PlacedGraph
from rooflang.sim.traffic import Axes

#: What a rank holds: (label, axes that cut it) and the extent, for every label that does not divide.
Extents = tuple[tuple[tuple[str, Axes], int], ...]


@dataclass(frozen=True, kw_only=True)
class UnevenCostModel(CostModel):
    """Costs on a rank that holds `extents`. Where a label divides it is the plain model."""

    extents: Mapping[tuple[str, Axes], int] = field(default_factory=dict)

    def parts(self, spec: Spec) -> Mapping[str, int]:
        return self._shares(_by_label(spec))

    def divides(self, parts: Mapping[str, Num]) -> Num:
        uneven = {label for label, _ in self.extents}
        return super().divides({label: count for label, count in parts.items() if label not in uneven})

    def mode(self, mode: Mode, tiers: Tiers = ()) -> Cost:
        if any(share == inf for share in self._loop_parts(mode).values()):
            return Cost()  # an empty shard: nothing to run
        return super().mode(mode, tiers)

    def _loop_parts(self, mode: Mode) -> dict[str, int]:
        axes: dict[str, Axes] = {}
        for axis, choice in enumerate(mode.choices):
            for label in choice.loops if isinstance(choice, Cut) else ():
                axes[label] = (*axes.get(label, ()), axis)
        return self._shares(axes)

    def _shares(self, axes: Mapping[str, Axes]) -> dict[str, int]:
        """How many times smaller each label is on this rank: a whole number where it divides."""
        return {label: self._share(label, cut) for label, cut in axes.items()}  # type: ignore[misc]

    def _share(self, label: str, axes: Axes) -> float:
        held = self.extents.get((label, axes))
        if held is None:
            return prod(self.mesh.axes[axis].size for axis in axes)
        return float(self.sizes[label]) / held if held else inf


def uneven_extents(placed: PlacedGraph, cost: CostModel) -> list[Extents]:
    """What each rank of the mesh holds of the labels that do not divide. Raises `PlacementError` for one that is tied
    to another label, so that its shards are not free."""
    cuts, aligned, tied = _cuts(placed)
    mesh = cost.mesh
    out: list[dict[tuple[str, Axes], int]] = [{} for _ in range(mesh.gpus)]
    places = list(product(*(range(axis.size) for axis in mesh.axes)))
    for label, sets in cuts.items():
        every = tuple(sorted({axis for axes in sets for axis in axes}))
        parts = [mesh.axes[axis].size for axis in every]
        size, multiple = int(cost.sizes[label]), aligned.get(label, 1)
        if size % (prod(parts) * multiple) == 0:
            continue
        if label in tied:
            raise PlacementError(
                f"{size} of {label!r} do not divide over {prod(parts)} ranks, and its shards follow another dim's",
                where=placed.plan.origin,
                expected=f"a multiple of {prod(parts) * multiple}",
            )
        shards = shard_sizes(size, parts, multiple_of=multiple, where=label)
        digits = list(product(*(range(part) for part in parts)))
        for axes in sets:
            at = [every.index(axis) for axis in axes]
            held: dict[tuple[int, ...], int] = {}
            for shard, digit in zip(shards, digits):
                mine = tuple(digit[i] for i in at)
                held[mine] = held.get(mine, 0) + shard
            for rank, place in enumerate(places):
                out[rank][label, axes] = held[tuple(place[axis] for axis in axes)]
    return [tuple(sorted(extents.items())) for extents in out]


def _cuts(placed: PlacedGraph) -> tuple[dict[str, set[Axes]], dict[str, int], set[str]]:
    """The sets of axes that cut each label, the alignment of its shards, and labels whose shards follow another's."""
    cuts: dict[str, set[Axes]] = {}
    aligned: dict[str, int] = {}
    tied: set[str] = set()
    for block in placed.plan.blocks.values():
        for mode in block.modes.values():
            rows = [(axis, c) for axis, c in enumerate(mode.choices) if isinstance(c, Cut)]
            loops: dict[str, Axes] = {}
            for axis, row in rows:
                aligned[row.dim] = lcm(aligned.get(row.dim, 1), row.multiple_of)
                tied |= {label for label in row.grouped if label} if row.grouped else set()
                tied |= set(row.loops) if len(row.loops) > 1 else set()
                for label in row.loops:
                    loops[label] = (*loops.get(label, ()), axis)
            for label, axes in loops.items():
                cuts.setdefault(label, set()).add(axes)
            for spec in (*mode.operands, mode.out):
                _note(cuts, spec)
        for path in (*block.paths.values(), *block.exits.values()):
            for step in path:
                _note(cuts, step.before)
                _note(cuts, step.after)
    for spec in placed.plan.boundary.values():
        _note(cuts, spec)
    return cuts, aligned, tied


def _note(cuts: dict[str, set[Axes]], spec: Spec) -> None:
    for label, axes in _by_label(spec).items():
        cuts.setdefault(label, set()).add(axes)


def _by_label(spec: Spec) -> dict[str, Axes]:
    out: dict[str, Axes] = {}
    for axis, state in enumerate(spec):
        if state not in STATES:
            out[state] = (*out.get(state, ()), axis)
    return out


def on_rank(cost: CostModel, extents: Extents) -> CostModel:
    """The cost model of a rank that holds these extents."""
    if not extents:
        return cost
    kept = {field.name: getattr(cost, field.name) for field in fields(CostModel) if field.init}
    return UnevenCostModel(**kept, extents=dict(extents))
