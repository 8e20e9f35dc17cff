"""A lower bound on the objective for all batch sizes at once, in a few array operations: to decide what to extract
first.

It lets every kernel run as fast as it can in any layout and every transfer be free.
"""

from __future__ import annotations

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.extractors.costed import CostedKind
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.memory import common_leaves, least_bytes, waves
from rooflang.extractors.readers import needed_values
from rooflang.extractors.task import Task

#: Shares of C against N in the bound on max(C, N).
_SHARES = np.linspace(0.0, 1.0, 11)

#: Prices of a byte of HBM where leaves may rest otherwise, as parts of what fetching it would cost.
_PRICES = (0.0, 0.1, 0.3, 1.0)


def quick_bounds_s(task: Task) -> FloatArray:
    """Lower bounds (b,) on the objective of every plan, by batch size; the task's own batch size does not matter.

    Where leaves may lie in other memories, HBM has a price: what plans pay for more of it than there is comes back as
    the price of the room that there is (Lagrange). Infinite where extents do not divide, or where the leaves alone
    exceed all memories.
    """
    shares = np.array([0.5]) if task.objective == "sum" else _SHARES
    best = np.max([_priced(task, shares, price) for price in _prices(task)], axis=0)
    return np.where(least_bytes(task) <= task.all_room_bytes, best, np.inf)


def _prices(task: Task) -> list[float]:
    """Seconds per byte of HBM."""
    if not task.costed.spares:
        return [0.0]
    cluster, far = task.costed.cost.cluster, [tier for tier in task.costed.tiers if tier != HBM]
    rate = cluster.tier(far[0]).read_bytes_per_s if far else cluster.levels[0].bytes_per_s
    return [price / rate for price in _PRICES]


def _priced(task: Task, shares: FloatArray, price_s: float) -> FloatArray:
    """The bound (b,) under a price of a byte of HBM, which counts as network time."""
    prices = price_s * (1.0 - shares)
    floors = {name: _floor(task, kind, shares, prices) for name, kind in task.costed.kinds.items()}
    stages = [sum(count * floors[name] for name, count in load.counts.items() if count) for load in task.slowest]
    paid = (prices * task.capacity_bytes)[:, None]
    best = np.max([np.max(stage - paid, axis=0) for stage in stages], axis=0)
    return np.asarray(best * (2.0 if task.objective == "sum" else 1.0))


def _floor(task: Task, kind: CostedKind, shares: FloatArray, prices: FloatArray) -> FloatArray:
    """Least share·C + (1 − share)·N of a block's kernels, and what they pay for the memory of their leaves, (shares,
    b)."""
    total = np.zeros((len(shares), kind.local_s.shape[1]))
    for value in needed_values(kind):
        makers = list(kind.makers[value])
        local, exposed = kind.local_s[makers], kind.exposed_s[makers]
        possible = np.isfinite(local)
        costs = shares[:, None, None] * np.where(possible, local, 0.0) + (1.0 - shares)[:, None, None] * exposed
        if prices.any():
            costs = costs + prices[:, None, None] * _near_bytes(task, kind, makers)
        total += np.where(possible, costs, np.inf).min(axis=1, initial=np.inf)
    return total


def _near_bytes(task: Task, kind: CostedKind, modes: list[int]) -> FloatArray:
    """What the leaves of some modes occupy in HBM, (modes, b); those that others read too are left out."""
    common = common_leaves(task.costed)
    out = np.zeros((len(modes), kind.local_s.shape[1]))
    for row, number in enumerate(modes):
        for read in kind.modes[number].leaves:
            if read.tier == HBM and (kind.kind.name, read.leaf) not in common:
                out[row] += kind.leaf_bytes[(read.leaf, read.spec)] * waves(task, kind, read.leaf)
    return out
