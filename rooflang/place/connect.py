"""Paths between specs, for layouts that were chosen by hand or by the grid: one collective an axis, cheapest order
first."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import PlacementError
from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import OWNER, REPLICATED, Spec, show_spec
from rooflang.ir.layout import Mode, Transfer, collective_of, make_transfer
from rooflang.ir.tensor import RESIDENT_ROLES
from rooflang.place.plan import BlockPlan

#: What makes a value smaller comes first, what makes it larger last, so that each collective moves as little as it can.
_ORDER = ("slice", "reduce_scatter", "all_to_all", "all_reduce", "all_gather", "broadcast")


def path(tensor: str, before: Spec, after: Spec) -> tuple[Transfer, ...]:
    """Transfers from one spec to another; axes that change alike move together. Raises `PlacementError` if there is
    none."""
    steps: dict[tuple[str, str, str], list[int]] = {}
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new:
            name = collective_of(old, new)
            if not name:
                raise PlacementError(f"{tensor} cannot go from {show_spec(before)} to {show_spec(after)}")
            steps.setdefault((name, old, new), []).append(axis)
    out, now = [], list(before)
    for (_, _, new), axes in sorted(steps.items(), key=lambda item: (_ORDER.index(item[0][0]), item[1])):
        last = tuple(now)
        for axis in axes:
            now[axis] = new
        out.append(make_transfer(tensor, last, tuple(now)))
    return tuple(out)


def lead(tensor: str, before: Spec, after: Spec) -> tuple[Transfer, ...]:
    """The path between two specs; what one owner has goes to all before each takes its share."""
    pairs = list(zip(before, after, strict=True))
    whole = tuple(REPLICATED if old == OWNER != new else old for old, new in pairs)
    if whole == before or all(collective_of(old, new) for old, new in pairs if old == OWNER != new):
        return path(tensor, before, after)
    return (*path(tensor, before, whole), *path(tensor, whole, after))


def connect(kind: BlockKind, modes: Mapping[str, Mode], boundary: Mapping[str, Spec]) -> BlockPlan:
    """Complete the modes of a block with the paths between them.

    `boundary` gives the spec of each port by the representative's tensor name. A leaf at rest lies as its reader
    wants it; a cache may not move, so an operator that reads a cache which another one wrote must want it as it is.
    """
    made: dict[str, Spec] = {t.name: boundary[t.name] for t in kind.inputs}
    made.update({name: mode.out for name, mode in modes.items()})
    paths: dict[tuple[str, int], tuple[Transfer, ...]] = {}
    for name, mode in modes.items():
        for index, (tensor, wanted) in enumerate(zip(mode.op.operands, mode.operands, strict=True)):
            have = made.get(tensor.name)
            if have is None or have == wanted:
                continue
            if tensor.role in RESIDENT_ROLES:
                raise PlacementError(f"{mode.op.name} reads the {tensor.role.value} {tensor.name} in another spec")
            paths[(name, index)] = lead(tensor.name, have, wanted)
    exits = {
        t.name: lead(t.name, made[t.name], boundary[t.name]) for t in kind.outputs if made[t.name] != boundary[t.name]
    }
    return BlockPlan(modes=dict(modes), paths=paths, exits=exits)
