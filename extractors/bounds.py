"""A lower bound on the objective for all batch sizes at once, in a few array operations: to decide what to extract
first.

It lets every kernel run as fast as it can in any layout and every transfer be free.
"""

from __future__ import annotations

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.extractors.chain import Chain
from rooflang.extractors.costed import CostedKind
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.memory import common_leaves, least_bytes, least_rest_bytes, waves
from rooflang.extractors.readers import needed_values
from rooflang.extractors.task import Task

#: Shares of C against N in the bound on max(C, N).
_SHARES = np.linspace(0.0, 1.0, 11)

#: Prices of a byte of HBM where leaves may rest otherwise, as parts of what fetching it would cost.
_PRICES = (0.0, 0.1, 0.3, 1.0)


def quick_bounds_s(task: Task, *, repartition: bool = False) -> FloatArray:
    """Lower bounds (b,) on the objective of every plan, by batch size; the task's own batch size does not matter.
    With `repartition` they are over all contiguous partitions into as many stages.

    Where leaves may lie in other memories, HBM has a price: what plans pay for more of it than there is comes back as
    the price of the room that there is (Lagrange). Infinite where extents do not divide, or where the leaves alone
    exceed all memories.
    """
    shares = np.array([0.5]) if task.objective == "sum" else _SHARES
    best = np.max([_priced(task, shares, price, repartition) for price in _prices(task)], axis=0)
    if repartition and len(task.stages) > 1:
        least = _least_slowest(task, {name: least_rest_bytes(task, kind) for name, kind in task.costed.kinds.items()})
    else:
        least = least_bytes(task)
    return np.where(least <= task.all_room_bytes, best, np.inf)


def _prices(task: Task) -> list[float]:
    """Seconds per byte of HBM."""
    if not task.costed.spares:
        return [0.0]
    cluster, far = task.costed.cost.cluster, [tier for tier in task.costed.tiers if tier != HBM]
    rate = cluster.tier(far[0]).read_bytes_per_s if far else cluster.levels[0].bytes_per_s
    return [price / rate for price in _PRICES]


def _priced(task: Task, shares: FloatArray, price_s: float, repartition: bool) -> FloatArray:
    """The bound (b,) under a price of a byte of HBM, which counts as network time."""
    prices = price_s * (1.0 - shares)
    floors = {name: _floor(task, kind, shares, prices) for name, kind in task.costed.kinds.items()}
    stages = [sum(count * floors[name] for name, count in load.counts.items() if count) for load in task.slowest]
    paid = (prices * task.capacity_bytes)[:, None]
    slowest = np.max(np.array(stages), axis=0) - paid
    best = np.max(slowest, axis=0)
    if repartition and len(task.stages) > 1:
        share = np.argmax(slowest, axis=0), np.arange(len(best))
        best = _least_slowest(task, {name: floor[share] for name, floor in floors.items()}) - paid[share[0], 0]
    return np.asarray(best * (2.0 if task.objective == "sum" else 1.0))


def _least_slowest(task: Task, floors: dict[str, FloatArray]) -> FloatArray:
    """What the stage that takes most takes at least (b,), over all contiguous partitions, where a block of a kind takes
    its floor (b,)."""
    counts = Chain(task=task).counts
    possible = np.all([np.isfinite(floors[name]) for name in counts], axis=0)  # every kind runs on some stage
    before = np.sum([np.where(possible, floors[name], 0.0)[:, None] * count for name, count in counts.items()], axis=0)
    takes = before[:, None, :] - before[:, :, None]
    takes = np.where(np.tri(takes.shape[1], k=0, dtype=bool), np.inf, takes)  # a stage has a layer at least
    least = takes[:, 0]
    for _ in range(len(task.stages) - 1):
        least = np.maximum(least[:, :, None], takes).min(axis=1)
    return np.where(possible, least[:, -1], np.inf)


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
