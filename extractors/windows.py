"""Pipelines whose leaves may leave HBM: a bound over all partitions from single stages that are squeezed in earnest.

The dual's bound mixes plans: some blocks of a kind with a leaf in HBM and some without, which one plan per kind cannot
do. For a stage by itself the integer programme knows better. What it proves of a stage holds for every stage that has
no fewer blocks of each kind: that one takes no less time and no less room. So the partition that is cheapest as far as
is known has one of its stages proved, and the next cheapest is looked for, until it is no cheaper than the best plan
known, or has no stage left to prove.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

import numpy as np

from rooflang.extractors import ilp
from rooflang.extractors.chain import Chain, cheapest
from rooflang.extractors.layouts import BoolArray, FloatArray
from rooflang.extractors.network import network
from rooflang.extractors.partitions import Partitions

#: Stages that are proved at most, columns of their integer programmes in all, and the nodes of a search tree.
_STAGES, _COLUMNS, _NODES = 16, 120_000, 40

#: Layers from one to before another one.
_Window = tuple[int, int]


@dataclass(kw_only=True, eq=False)
class Windows:
    """The search of a `goal`; `floors` are what stages take at least, as `Chain.floors` has them: (stages, layers + 1,
    layers + 1)."""

    goal: Partitions
    floors: FloatArray
    _proved: set[tuple[float, ...]] = field(default_factory=set)

    def run(self) -> None:
        """Prove stages until the goal is reached or nothing more is to be had. Raises `LimitReached`, with the bound
        so far."""
        most = min(_STAGES, max(1, _COLUMNS // network(self._chain.costed).columns))
        while True:
            bound_s, layers = cheapest(self.floors)
            window = self._next(list(pairwise(accumulate(layers, initial=0))))
            if self.goal.done(bound_s) or window is None or len(self._proved) >= most:
                return
            self._chain.task.check()
            self._prove(window)

    @property
    def _chain(self) -> Chain:
        return self.goal.chain

    def _next(self, windows: Sequence[_Window]) -> _Window | None:
        """Of the stages of a partition that with most layers that has not been proved."""
        waiting = [window for window in windows if self._blocks(window) not in self._proved]
        return max(waiting, key=lambda window: window[1] - window[0], default=None)

    def _blocks(self, window: _Window) -> tuple[float, ...]:
        """How many blocks of each kind a stage has."""
        first, last = window
        return tuple(float(count[last] - count[first]) for count in self._chain.counts.values())

    def _prove(self, window: _Window) -> None:
        first, last = window
        labels = tuple(label for layer in self._chain.layers[first:last] for label in layer)
        others = ((),) * (len(self._chain.task.stages) - 1)  # each holds a wave, and that is all they count for here
        task, goal = replace(self._chain.task, stages=(labels, *others)), self.goal
        enough_s = min(goal.cutoff_s, goal.value_s / (1.0 + goal.gap))
        least_s, found = ilp.proved(task, nodes=_NODES, gap=goal.gap, cutoff_s=enough_s, pool=goal.pool)
        self._proved.add(self._blocks(window))
        self.floors = np.maximum(self.floors, np.where(self._contain(window), least_s, 0.0))
        if found is not None:
            goal.offer(found)

    def _contain(self, window: _Window) -> BoolArray:
        """Which stages have as many blocks of each kind as a window, (layers + 1, layers + 1)."""
        least = zip(self._chain.counts.values(), self._blocks(window), strict=True)
        return np.asarray(np.all([count[None, :] - count[:, None] >= number for count, number in least], axis=0))
