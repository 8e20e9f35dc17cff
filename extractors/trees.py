"""The cheapest way to serve several readers of one tensor: a tree of transfers in which shared parts are paid once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rooflang.extractors.layouts import FloatArray


def serve(seconds: FloatArray, root: int, targets: Iterable[int]) -> tuple[float, dict[int, list[int]]]:
    """A minimum Steiner arborescence in the metric closure `seconds` (n, n) from layout `root` to `targets`.

    Returns its cost (infinite where a target is out of reach) and, for every target, the layouts from the root to it.
    Dreyfus and Wagner's dynamic programme over subsets of targets; a tensor has few readers.
    """
    wanted = sorted({t for t in targets if seconds[root, t] > 0.0})
    trails = {t: [root] if t == root else [root, t] for t in targets}
    if len(wanted) < 2:
        return (float(seconds[root, wanted[0]]) if wanted else 0.0), trails
    if len(wanted) == 2:
        hub = int(np.argmin(seconds[root] + seconds[:, wanted[0]] + seconds[:, wanted[1]]))
        cost = float(seconds[root, hub] + seconds[hub, wanted[0]] + seconds[hub, wanted[1]])
        trails.update({t: _trail([root, hub, t]) for t in wanted})
        return cost, trails
    cost, branches = _dreyfus_wagner(seconds, root, wanted)
    trails.update({wanted[number]: trail for number, trail in branches.items()})
    return cost, trails


def tree_s(seconds: FloatArray, root: int, targets: Iterable[int]) -> FloatArray:
    """The cost of `serve` at all batch sizes: `seconds` (n, n, b), the result (b,)."""
    wanted = sorted({t for t in targets if (seconds[root, t] > 0.0).any()})
    if not wanted:
        return np.zeros(seconds.shape[2])
    if len(wanted) == 1:
        return np.asarray(seconds[root, wanted[0]])
    if len(wanted) == 2:
        return np.asarray((seconds[root] + seconds[:, wanted[0]] + seconds[:, wanted[1]]).min(axis=0))
    full = (1 << len(wanted)) - 1
    best = {1 << number: seconds[:, target] for number, target in enumerate(wanted)}
    for subset in range(3, full + 1):
        if subset & (subset - 1):
            joined = np.min([best[half] + best[subset ^ half] for half in _halves(subset)], axis=0)
            best[subset] = (seconds + joined[None]).min(axis=1) if subset < full else joined
    return np.asarray((seconds[root] + best[full]).min(axis=0))


def _halves(subset: int) -> list[int]:
    """One of each two parts into which a set (by its bits) can be split."""
    return [half for half in range(1, subset) if half & subset == half and half < subset ^ half]


def _trail(stops: list[int]) -> list[int]:
    """The layouts in turn, without repetitions."""
    return [stop for index, stop in enumerate(stops) if index == 0 or stop != stops[index - 1]]


def _dreyfus_wagner(seconds: FloatArray, root: int, targets: list[int]) -> tuple[float, Mapping[int, list[int]]]:
    full = (1 << len(targets)) - 1
    # best[s] is the cost by root of a tree that reaches the targets in s; it splits at hub[s] into split[s] and the
    # rest.
    best = {1 << number: seconds[:, target] for number, target in enumerate(targets)}
    hub: dict[int, np.ndarray] = {}
    split: dict[int, np.ndarray] = {}
    for subset in range(3, full + 1):
        if subset & (subset - 1) == 0:
            continue
        halves = _halves(subset)
        sums = np.stack([best[half] + best[subset ^ half] for half in halves])
        joined = sums.min(axis=0)
        split[subset] = np.array(halves)[sums.argmin(axis=0)]
        reached = seconds + joined[None, :]
        hub[subset] = reached.argmin(axis=1)
        best[subset] = reached.min(axis=1)
    trails: dict[int, list[int]] = {}
    stack = [(full, root, [root])]
    while stack:
        subset, at, trail = stack.pop()
        if subset in hub:
            meet = int(hub[subset][at])
            half = int(split[subset][meet])
            stack += [(part, meet, [*trail, meet]) for part in (half, subset ^ half)]
        else:
            number = subset.bit_length() - 1
            trails[number] = _trail([*trail, targets[number]])
    return float(best[full][root]), trails
