"""The numbers of a task on its network: which columns may be used, and what each costs in every stage."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rooflang.extractors.costed import CostedKind
from rooflang.extractors.hops import useful_hops
from rooflang.extractors.layouts import BoolArray, FloatArray
from rooflang.extractors.memory import output_bytes
from rooflang.extractors.network import Network
from rooflang.extractors.readers import usable_modes
from rooflang.extractors.task import Load, Task


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """`usable` (columns,), and per stage that can be the slowest C and N of every column, (stages, columns),
    seconds."""

    usable: BoolArray
    local_s: FloatArray
    exposed_s: FloatArray


def numbers(net: Network, task: Task, *, frugal: bool, only: Mapping[str, Collection[int]] | None = None) -> Numbers:
    """Costs of the columns for the task's batch size; `frugal` keeps what is slower but needs less memory, `only` names
    the modes of each kind that are to be used.

    Raises `PlacementError` where nothing is left that makes a value.
    """
    decisions = np.zeros(net.integral, bool)
    for start, kind in zip(net.mode_start, net.kinds):
        modes = undominated(kind, usable_modes(kind, task.at, task.keep), task.at, frugal=frugal)
        if only is not None:
            modes &= np.isin(np.arange(len(modes)), list(only[kind.kind.name]))
        decisions[start : start + len(modes)] = modes
    for (group, spec), column in net.border.items():
        decisions[column] = spec == task.boundary.get(group, spec)
    usable = np.ones(net.columns, bool)
    usable[: net.integral] = decisions
    seconds = net.seconds[:, task.at]
    arcs = net.table >= 0
    known = seconds[net.table[arcs]]
    usable[arcs] = np.where(net.free[arcs], known == 0.0, np.isfinite(known))
    _mask_transfers(net, task, usable)
    flows = net.parent >= 0
    usable[flows] &= usable[net.parent[flows]]
    _mask_unbalanced(net, usable)
    loads = task.slowest
    return Numbers(
        usable=usable,
        local_s=np.stack([_local(net, task, load) for load in loads]) * usable,
        exposed_s=np.stack([_exposed(net, task, load, usable) for load in loads]),
    )


def _mask_transfers(net: Network, task: Task, usable: BoolArray) -> None:
    """Leave out shared transfers that cannot be part of a cheapest tree at this batch size."""
    for shared in net.shared:
        closure = net.kinds[shared.kind].values[shared.value].layouts.closure
        starts = np.zeros(len(shared.column), bool)
        starts[[layout for layout, columns in shared.makers.items() if usable[columns].any()]] = True
        wanted = [layout for layout, columns in shared.wants.items() if usable[columns].any()]
        ends = np.asarray(shared.holds[:, wanted].any(axis=1))
        hops = useful_hops(closure.seconds[:, :, task.at, None], starts, ends, shared.readers)[:, :, 0]
        usable[shared.column[(shared.column >= 0) & ~hops]] = False


def _mask_unbalanced(net: Network, usable: BoolArray) -> None:
    """Leave out columns of rows that nothing else can balance, until nothing changes."""
    balance = (net.high == 0.0)[net.row]
    exact = (net.low == 0.0)[net.row]
    plus, minus = balance & (net.sign > 0), balance & (net.sign < 0)
    count = -1
    while usable.sum() != count:
        count = usable.sum()
        alive = usable[net.col]
        sources = np.bincount(net.row[alive & minus], minlength=len(net.low))[net.row] > 0
        sinks = np.bincount(net.row[alive & plus], minlength=len(net.low))[net.row] > 0
        usable[net.col[(plus & ~sources) | (minus & exact & ~sinks)]] = False


def _per_column(net: Network, load: Load) -> FloatArray:
    """How many blocks of its kind the stage has, by column."""
    counts = np.array([load.counts[kind.kind.name] for kind in net.kinds] + [0], np.float64)
    return counts[net.kind]


def _local(net: Network, task: Task, load: Load) -> FloatArray:
    out = np.zeros(net.columns)
    for start, kind in zip(net.mode_start, net.kinds):
        local = kind.local_s[:, task.at]
        out[start : start + len(local)] = np.where(np.isfinite(local), local, 0.0)
    return out * _per_column(net, load)


def _exposed(net: Network, task: Task, load: Load, usable: BoolArray) -> FloatArray:
    out = np.zeros(net.columns)
    for start, kind in zip(net.mode_start, net.kinds):
        out[start : start + len(kind.modes)] = kind.exposed_s[:, task.at]
    arcs = net.table >= 0
    out[arcs] = net.seconds[net.table[arcs], task.at]
    out = np.where(usable, out, 0.0) * _per_column(net, load)
    for send in load.sends:
        for (group, spec), column in net.border.items():
            if group == send.group and usable[column]:
                out[column] += task.send_s(send, spec)
    return out


def undominated(kind: CostedKind, good: BoolArray, at: int, *, frugal: bool) -> BoolArray:
    """Of the modes `good`, those that no other one of them replaces at no cost; `frugal`: nor at no cost of memory."""
    good = good.copy()
    measures = [kind.local_s[:, at], kind.exposed_s[:, at]]
    if frugal:
        measures += _bytes(kind, at)
    for makers, stands_in in zip(kind.makers, _stand_ins(kind)):
        some = np.array(makers, np.int64)
        beaten = stands_in & good[some][:, None]  # [i, j]: i replaces j
        for measure in measures:
            beaten &= measure[some][:, None] <= measure[some][None, :]
        # Of two modes that replace each other the first one stays.
        beaten &= ~(beaten.T & np.tri(len(some), k=-1, dtype=bool))
        good[some] &= ~beaten.any(axis=0)
    return good


@lru_cache(maxsize=64)
def _stand_ins(kind: CostedKind) -> tuple[BoolArray, ...]:
    """For each value the mask [i, j] over its modes: mode i makes at least what j makes from no more than j reads.

    "More" is a layout of which the other one is a slice. A leaf that others read too has to lie as it did.
    """
    holds = [value.layouts.closure.holds for value in kind.values]
    out = []
    for value, makers in enumerate(kind.makers):
        modes = [kind.modes[number] for number in makers]
        made = np.array([mode.out for mode in modes], np.int64)
        mask = np.asarray(holds[value][made[:, None], made[None, :]])
        needs = [(*(r.value for r in m.reads), *(r for r in m.leaves if r.leaf in kind.common_leaves)) for m in modes]
        for i, j in zip(*np.nonzero(mask)):
            mask[i, j] = needs[i] == needs[j] and i != j
        for place in range(max((len(mode.reads) for mode in modes), default=0)):
            read = np.array([mode.reads[place].layout if place < len(mode.reads) else 0 for mode in modes], np.int64)
            source = np.array([mode.reads[place].value if place < len(mode.reads) else 0 for mode in modes], np.int64)
            for number in set(source.tolist()):
                mine = source == number
                less = holds[number][np.where(mine, read, 0)[None, :], np.where(mine, read, 0)[:, None]]
                mask &= less | ~mine[:, None] | ~mine[None, :]
        out.append(mask)
    return tuple(out)


def _bytes(kind: CostedKind, at: int) -> list[FloatArray]:
    """What each mode's leaves occupy in each memory, what is gathered for it, and its output."""
    tiers = sorted({read.tier for mode in kind.modes for read in mode.leaves})
    leaves = [
        [sum(kind.leaf_bytes[(r.leaf, r.spec)][at] for r in mode.leaves if r.tier == tier) for mode in kind.modes]
        for tier in tiers
    ]
    made = [output_bytes(kind, mode, at, buffers=True) for mode in kind.modes]
    gathered = [kind.gathered_bytes(mode, at) for mode in kind.modes]
    return [np.array(each, np.float64) for each in (*leaves, gathered, made)]
