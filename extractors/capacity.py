"""Rows of the integer programme that keep every stage within a rank's memory.

They ask for no more than the simulation will find, so that no plan that fits is lost. Sizes enter as shares of the
capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.extractors.costed import CostedKind
from rooflang.extractors.layouts import BoolArray, FloatArray
from rooflang.extractors.memory import (
    common_leaves,
    kernel_bytes,
    left_behind,
    lying_bytes,
    output_bytes,
    rests_bytes,
    waves,
)
from rooflang.extractors.network import Network
from rooflang.extractors.programme import Level, Row, Sum
from rooflang.extractors.task import Load, Task
from rooflang.ir.cut import Spec

#: Kernels, and leaves that several kernels read, that work on or hold less than this share of the memory get no rows.
_TINY = 1e-6


def capacity_rows(net: Network, task: Task, usable: BoolArray, margin: float = 0.0) -> list[Row]:
    """For each stage: what rests in each memory; in HBM what rests there and what the step leaves behind, and what
    rests there and what any one kernel works on. Of the network's columns those that are `usable` count; `margin` is
    the share of each memory that stays free. Raises `LimitReached`."""
    rows: list[Row] = []
    seen: set[tuple[tuple[str, int], ...]] = set()
    for load in task.loads:
        key = tuple(sorted(load.counts.items()))
        if key not in seen:
            seen.add(key)
            rows += _stage_rows(net, task, load, usable, 1.0 - margin)
    return rows


def _stage_rows(net: Network, task: Task, load: Load, usable: BoolArray, high: float) -> Iterator[Row]:
    for tier in task.costed.tiers:
        room = task.room_bytes(tier)
        levels = [(level, size / room) for level, size in _common(net, task, load, tier)]
        rests = Level(sums=(_sum(_resident(net, task, load, tier) * usable / room, levels),))
        yield Row(sum=_sum(np.zeros(net.columns), [(rests, 1.0)]), high=high)
        if tier == HBM:
            yield Row(sum=_sum(_left(net, task, load) * usable / room, [(rests, 1.0)]), high=high)
            for start, kind in zip(net.mode_start, net.kinds):
                task.check()
                for value in range(len(kind.values)) if load.counts[kind.kind.name] else ():
                    live = _live(net, task, start, kind, value) * usable / room
                    if live.max(initial=0.0) > _TINY:
                        yield Row(sum=_sum(live, [(rests, 1.0)]), high=high)


def _sum(values: FloatArray, levels: Sequence[tuple[Level, float]]) -> Sum:
    columns = np.flatnonzero(values)
    return Sum(columns=columns, values=values[columns], levels=levels)


def _resident(net: Network, task: Task, load: Load, tier: str) -> FloatArray:
    """What the leaves of each mode's kernels occupy in a memory."""
    out = np.zeros(net.columns)
    for start, kind in zip(net.mode_start, net.kinds):
        count = load.counts[kind.kind.name]
        rests = [count * rests_bytes(task, kind, mode, tier) for mode in kind.modes] if count else 0.0
        out[start : start + len(kind.modes)] = rests
    return out


def _common(net: Network, task: Task, load: Load, tier: str) -> list[tuple[Level, float]]:
    """Leaves that several kernels of a block read, which a memory holds once in each layout, with their bytes."""
    out = []
    for start, kind in zip(net.mode_start, net.kinds):
        name, count = kind.kind.name, load.counts[kind.kind.name]
        several = {leaf for k, leaf in common_leaves(task.costed) - task.costed.blocks.shared_leaves if k == name}
        readers: dict[tuple[str, Spec], dict[int, list[int]]] = {}
        for number, mode in enumerate(kind.modes) if count else ():
            for read in mode.leaves:
                if read.leaf in several and read.tier == tier:
                    by_value = readers.setdefault((read.leaf, read.spec), {})
                    by_value.setdefault(mode.value, []).append(start + number)
        for (leaf, spec), by_value in readers.items():
            size = count * float(kind.leaf_bytes[leaf, spec][task.at]) * waves(task, kind, leaf)
            if _TINY * task.room_bytes(tier) < size < np.inf:
                read_by = (np.array(columns, np.int64) for columns in by_value.values())
                sums = tuple(Sum(columns=columns, values=np.ones(len(columns))) for columns in read_by)
                out.append((Level(sums=sums), size))
    return out


def _left(net: Network, task: Task, load: Load) -> FloatArray:
    """What the step leaves behind: in the layout of its port group, or, where what is received takes no room, as
    made."""
    out = np.zeros(net.columns)
    for start, kind in zip(net.mode_start, net.kinds):
        for index, _, group, count in left_behind(task, load, kind):
            value = kind.values[index]
            if task.costed.cost.assumptions.receive_buffers:
                for spec in task.costed.borders[group]:
                    size = lying_bytes(value, value.layouts.number[spec], task.at)
                    out[net.border[(group, spec)]] += count * size
            else:
                for number in kind.makers[index]:
                    out[start + number] += count * output_bytes(kind, kind.modes[number], task.at, buffers=False)
    return np.where(np.isfinite(out), out, 0.0)


def _live(net: Network, task: Task, start: int, kind: CostedKind, value: int) -> FloatArray:
    """What the kernel that makes a value works on."""
    out, at = np.zeros(net.columns), task.at
    buffers = task.costed.cost.assumptions.receive_buffers
    for number in kind.makers[value]:
        mode = kind.modes[number]
        out[start + number] = kernel_bytes(task, kind, mode, at)
    if not buffers and kind.makers[value]:
        reads = [{read.value for read in kind.modes[number].reads} for number in kind.makers[value]]
        for source in set.intersection(*reads):
            for number in kind.makers[source]:
                out[start + number] += output_bytes(kind, kind.modes[number], at, buffers=False)
    return out
