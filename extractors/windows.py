"""Pipelines whose leaves may leave HBM: a bound over all partitions from single stages that are squeezed in earnest.

The dual's bound mixes plans: some blocks of a kind with a leaf in HBM and some without, which one plan per kind cannot
do. For a stage by itself the integer programme knows better. What it proves of a stage holds for every stage that has
no fewer blocks of each kind: that one takes no less time and no less room. So the partition that is cheapest as far as
is known has one of its stages proved, and the next cheapest is looked for, until it is no cheaper than the best plan
known, or has no stage left to prove.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

import numpy as np

from rooflang.errors import CapacityError
from rooflang.extractors import ilp
from rooflang.extractors.chain import Chain, cheapest
from rooflang.extractors.layouts import BoolArray, FloatArray
from rooflang.extractors.partitions import Partitions
from rooflang.place.grid import partition

#: Stages that are looked at by the dual at most, columns of integer programmes in all beyond which no further one is
#: begun, and the nodes of a search tree.
_STAGES, _COLUMNS, _NODES = 16, 60_000, 40

#: Layers from one to before another one.
_Window = tuple[int, int]


@dataclass(kw_only=True, eq=False)
class Windows:
    """The search of a `goal`; `floors` are what stages take at least, as `Chain.floors` has them: (stages, layers + 1,
    layers + 1)."""

    goal: Partitions
    floors: FloatArray
    _looked: set[tuple[float, ...]] = field(default_factory=set)
    _proved: set[tuple[float, ...]] = field(default_factory=set)
    _columns: int = 0

    def run(self) -> None:
        """Prove stages until the goal is reached or nothing more is to be had: first by the dual alone, which takes a
        tenth of the time, as long as the cheapest partition has stages for that. Raises `LimitReached`, with the bound
        so far."""
        while True:
            bound_s, layers = cheapest(self.floors)
            stages = list(pairwise(accumulate(layers, initial=0)))
            if self.goal.done(bound_s):
                return
            self._chain.task.check()
            window = self._next(stages, self._looked) if len(self._looked) < _STAGES else None
            if window is not None:
                self._prove(window, 0)
                continue
            window = self._next(stages, self._proved)
            if window is None or self._columns >= _COLUMNS:
                return
            self._prove(window, _NODES)

    def fill(self, *, gap: float, worth: float) -> None:
        """Look for a plan in earnest on the partition that the bound is about, unless the goal is reached. Raises
        `LimitReached`."""
        bound_s, layers = cheapest(self.floors)
        if not self.goal.done(bound_s):
            task, goal = self._chain.task, self.goal
            on = replace(task, stages=partition(task.costed.blocks, layers))
            with suppress(CapacityError):
                found = ilp.extract(on, gap=gap, worth=worth, cutoff_s=goal.cutoff_s, pool=goal.pool)
                goal.offer(found.decisions)

    @property
    def _chain(self) -> Chain:
        return self.goal.chain

    def _next(self, windows: Sequence[_Window], known: Collection[tuple[float, ...]]) -> _Window | None:
        """Of the stages of a partition that with most layers that is not known yet."""
        waiting = [window for window in windows if self._blocks(window) not in known]
        return max(waiting, key=lambda window: window[1] - window[0], default=None)

    def _blocks(self, window: _Window) -> tuple[float, ...]:
        """How many blocks of each kind a stage has."""
        first, last = window
        return tuple(float(count[last] - count[first]) for count in self._chain.counts.values())

    def _prove(self, window: _Window, nodes: int) -> None:
        first, last = window
        labels = tuple(label for layer in self._chain.layers[first:last] for label in layer)
        others = ((),) * (len(self._chain.task.stages) - 1)  # each holds a wave, and that is all they count for here
        task, goal = replace(self._chain.task, stages=(labels, *others)), self.goal
        enough_s = min(goal.cutoff_s, goal.value_s / (1.0 + goal.gap))
        least_s, found, columns = ilp.proved(task, nodes=nodes, gap=goal.gap, cutoff_s=enough_s, pool=goal.pool)
        (self._proved if nodes else self._looked).add(self._blocks(window))
        self._columns += columns
        self.floors = np.maximum(self.floors, np.where(self._contain(window), least_s, 0.0))
        if found is not None:
            goal.offer(found)

    def _contain(self, window: _Window) -> BoolArray:
        """Which stages have as many blocks of each kind as a window, (layers + 1, layers + 1)."""
        least = zip(self._chain.counts.values(), self._blocks(window), strict=True)
        return np.asarray(np.all([count[None, :] - count[:, None] >= number for count, number in least], axis=0))
