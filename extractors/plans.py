"""From decisions (a mode per value, a layout per port group) to block plans and what they cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.errors import PlacementError
from rooflang.extractors.costed import CostedKind
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.task import Choice
from rooflang.extractors.trees import serve, tree_s
from rooflang.ir.cut import Spec, show_spec
from rooflang.ir.kinds.recall import RECALL
from rooflang.ir.layout import Transfer
from rooflang.place.plan import BlockPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delivery:
    """A value made in layout `made`: the layouts that kernels want, by (mode, operand), and those it leaves in, by
    port."""

    value: int
    made: int
    wanted: Mapping[tuple[int, int], int]
    leaving: Mapping[str, int]

    @property
    def targets(self) -> list[int]:
        return [*self.wanted.values(), *self.leaving.values()]


def needed_modes(kind: CostedKind, choice: Choice) -> dict[int, int]:
    """The part of a choice that the exits depend on, in the order of the values. Raises `KeyError` for what is
    missing."""
    stack = [index for index, value in enumerate(kind.values) if value.exits]
    found: dict[int, int] = {}
    while stack:
        value = stack.pop()
        if value not in found and kind.values[value].port < 0:
            found[value] = choice[value]
            stack += [read.value for read in kind.modes[choice[value]].reads]
    return dict(sorted(found.items()))


def block_s(kind: CostedKind, choice: Choice, boundary: Mapping[int, Spec]) -> tuple[FloatArray, FloatArray]:
    """C and N (b,) of one block; infinite where a reader cannot be reached or nothing makes what it reads."""
    try:
        used = needed_modes(kind, choice)
    except KeyError:
        never = np.full(kind.local_s.shape[1], np.inf)
        return never, never
    modes = list(used.values())
    exposed = kind.exposed_s[modes].sum(axis=0)
    for one in _deliveries(kind, used, boundary):
        exposed = exposed + tree_s(kind.values[one.value].layouts.closure.seconds, one.made, one.targets)
    return kind.local_s[modes].sum(axis=0), exposed


def block_plan(kind: CostedKind, choice: Choice, boundary: Mapping[int, Spec], at: int) -> BlockPlan:
    """The plan of a choice: every value goes to its readers by a cheapest tree of transfers.

    Raises `PlacementError` where a reader cannot be reached.
    """
    used = needed_modes(kind, choice)
    paths: dict[tuple[str, int], tuple[Transfer, ...]] = {}
    exits: dict[str, tuple[Transfer, ...]] = {}
    for one in _deliveries(kind, used, boundary):
        layouts = kind.values[one.value].layouts
        cost, trails = serve(layouts.closure.seconds[:, :, at], one.made, one.targets)
        if not np.isfinite(cost):
            name, spec = kind.values[one.value].tensor.name, show_spec(layouts.specs[one.made])
            raise PlacementError(f"{name}, made as {spec}, cannot reach all of its readers", where=kind.kind.name)
        for (mode, operand), layout in one.wanted.items():
            if layout != one.made:
                paths[(kind.modes[mode].mode.op.output.name, operand)] = layouts.path(trails[layout], at)
        exits.update({p: layouts.path(trails[to], at) for p, to in one.leaving.items() if to != one.made})
    for mode in used.values():
        gathers = ((read.operand, read.gather) for read in kind.modes[mode].leaves if read.gather is not None)
        paths.update({(kind.modes[mode].mode.op.output.name, operand): (step,) for operand, step in gathers})
    modes = {kind.modes[mode].mode.op.output.name: kind.modes[mode].mode for mode in used.values()}
    order = [op.output.name for op in kind.kind.ops if op.output.name in modes]
    reads = [read for mode in used.values() for read in kind.modes[mode].leaves]
    return BlockPlan(
        modes={name: modes[name] for name in order},
        paths=paths,
        exits=exits,
        tiers={read.leaf: read.tier for read in reads if read.tier != HBM},
        aliases={**kind.aliases, **dict(_recalled(kind, modes))},
    )


def _recalled(kind: CostedKind, made: Collection[str]) -> Iterator[tuple[str, str]]:
    """What is read in the place of each recall that was left out: of the value, computed anew, and the cache the one
    that the plan makes."""
    for op in kind.kind.ops:
        if op.kind == RECALL and op.output.name in kind.aliases:
            yield from ((op.output.name, tensor.name) for tensor in op.operands[:2] if tensor.name in made)


def _deliveries(kind: CostedKind, used: Choice, boundary: Mapping[int, Spec]) -> Iterator[_Delivery]:
    wanted: dict[int, dict[tuple[int, int], int]] = {}
    for mode in used.values():
        for read in kind.modes[mode].reads:
            wanted.setdefault(read.value, {})[(mode, read.operand)] = read.layout
    for index, value in enumerate(kind.values):
        if value.port >= 0 or index in used:
            number = value.layouts.number
            yield _Delivery(
                value=index,
                made=number[boundary[value.port]] if value.port >= 0 else kind.modes[used[index]].out,
                wanted=wanted.get(index, {}),
                leaving={port: number[boundary[group]] for port, group in value.exits},
            )
