"""Rows of the integer programme that keep every stage within a rank's memory.

They ask for no more than the simulation will find, so that no plan that fits is lost. Sizes enter as shares of the
capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.extractors.costed import CostedKind
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.memory import (
    common_leaves,
    left_behind,
    lying_bytes,
    operand_bytes,
    output_bytes,
    rests_bytes,
    waves,
)
from rooflang.extractors.network import Network
from rooflang.extractors.programme import Row, Shared
from rooflang.extractors.task import Load, Task
from rooflang.ir.cut import Spec

#: Leaves that several kernels read and that hold less than this share of the memory in all blocks get no rows.
_TINY = 1e-6

#: A kernel that works on less than this share of the memory gets no row of its own, unless more is asked for.
LARGE = 0.01


def capacity_rows(net: Network, task: Task, least_share: float = LARGE) -> list[Row]:
    """For each stage: what rests in each memory; in HBM what rests there and what the step leaves behind, and what
    rests there and what any one kernel works on, if that is `least_share` of the memory or more."""
    rows: list[Row] = []
    seen: set[tuple[tuple[str, int], ...]] = set()
    for load in task.loads:
        key = tuple(sorted(load.counts.items()))
        if key not in seen:
            seen.add(key)
            rows += _stage_rows(net, task, load, least_share)
    return rows


def _stage_rows(net: Network, task: Task, load: Load, least_share: float) -> Iterator[Row]:
    for tier in task.costed.tiers:
        if tier != HBM:
            yield _row(task, _resident(net, task, load, tier), _common(net, task, load, tier), tier)
    resident, common = _resident(net, task, load, HBM), _common(net, task, load, HBM)
    yield _row(task, resident + _left(net, task, load), common)
    for start, kind in zip(net.mode_start, net.kinds):
        for value in range(len(kind.values)) if load.counts[kind.kind.name] else ():
            live = _live(net, task, start, kind, value)
            if live.max(initial=0.0) > least_share * task.capacity_bytes:
                yield _row(task, resident + live, common)


def _resident(net: Network, task: Task, load: Load, tier: str) -> FloatArray:
    """What the leaves of each mode's kernels occupy in a memory."""
    out = np.zeros(net.columns)
    for start, kind in zip(net.mode_start, net.kinds):
        count = load.counts[kind.kind.name]
        rests = [count * rests_bytes(task, kind, mode, tier) for mode in kind.modes] if count else 0.0
        out[start : start + len(kind.modes)] = rests
    return out


def _common(net: Network, task: Task, load: Load, tier: str) -> list[tuple[Shared, float]]:
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
                shared = Shared(readers=tuple(np.array(columns, np.int64) for columns in by_value.values()))
                out.append((shared, size))
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
        out[start + number] = output_bytes(kind, mode, at, buffers=buffers)
        out[start + number] += operand_bytes(kind, mode, at) if buffers else kind.gathered_bytes(mode, at)
    if not buffers and kind.makers[value]:
        reads = [{read.value for read in kind.modes[number].reads} for number in kind.makers[value]]
        for source in set.intersection(*reads):
            for number in kind.makers[source]:
                out[start + number] += output_bytes(kind, kind.modes[number], at, buffers=False)
    return out


def _row(task: Task, sizes: FloatArray, common: Sequence[tuple[Shared, float]], tier: str = HBM) -> Row:
    columns, room = np.flatnonzero(sizes), task.room_bytes(tier)
    shared = tuple((each, size / room) for each, size in common)
    return Row(columns=columns, values=sizes[columns] / room, high=1.0, shared=shared)
