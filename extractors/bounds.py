"""A lower bound on the objective for all batch sizes at once, in a few array operations: to decide what to extract
first.

It lets every kernel run as fast as it can in any layout and every transfer be free.
"""

from __future__ import annotations

import numpy as np

from rooflang.extractors.costed import CostedKind
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.memory import least_bytes
from rooflang.extractors.readers import needed_values
from rooflang.extractors.task import Task

#: Shares of C against N in the bound on max(C, N).
_SHARES = np.linspace(0.0, 1.0, 11)


def quick_bounds_s(task: Task) -> FloatArray:
    """Lower bounds (b,) on the objective of every plan, by batch size; the task's own batch size does not matter.

    Infinite where extents do not divide, or where the leaves alone exceed the memory.
    """
    shares = np.array([0.5]) if task.objective == "sum" else _SHARES
    floors = {name: _floor(kind, shares) for name, kind in task.costed.kinds.items()}
    stages = [sum(count * floors[name] for name, count in load.counts.items() if count) for load in task.slowest]
    best = np.max([np.max(stage, axis=0) for stage in stages], axis=0) * (2.0 if task.objective == "sum" else 1.0)
    return np.where(least_bytes(task) <= task.all_room_bytes, best, np.inf)


def _floor(kind: CostedKind, shares: FloatArray) -> FloatArray:
    """Least share·C + (1 − share)·N of a block's kernels, (shares, b)."""
    total = np.zeros((len(shares), kind.local_s.shape[1]))
    for value in needed_values(kind):
        makers = list(kind.makers[value])
        local, exposed = kind.local_s[makers], kind.exposed_s[makers]
        possible = np.isfinite(local)
        costs = shares[:, None, None] * np.where(possible, local, 0.0) + (1.0 - shares)[:, None, None] * exposed
        total += np.where(possible, costs, np.inf).min(axis=1, initial=np.inf)
    return total
