"""A first look at all batch sizes of one mesh: plans that are good for a few of them under a few weights, found in one
pass of the dual, and what each of these costs at every batch size.

A batch size takes the best of the plans that fit. That is within a few percent of the best there is, for a small part
of the work; where it matters, an extraction goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rooflang.errors import LimitReached, PlacementError
from rooflang.extractors.chain import Chain
from rooflang.extractors.dual import Dual
from rooflang.extractors.forms import Points, Weights
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.pool import Pool
from rooflang.extractors.task import Decisions, Stages, Task
from rooflang.place.grid import partition

#: Shares of C in the weights.
_SHARES = (0.5, 0.8, 0.95)

#: The share where each point takes long.
_SHARE = 0.8

#: Batch sizes that are looked at under weights are at least so many times as large as the last one.
_APART = 6.0

#: Entries that a table of the dual may have.
LIMIT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plan for one batch size that fits by what is known before it is simulated, on its stages, and its objective."""

    value_s: float
    decisions: Decisions
    stages: Stages


@dataclass(kw_only=True, eq=False)
class Survey:
    """What a look at a task found; the task's own batch size does not matter. `bounds_s` (b,) are lower bounds on the
    objective over all partitions into as many stages, infinite where there is no plan."""

    task: Task
    repartition: bool
    pool: Pool
    bounds_s: FloatArray
    _values_s: dict[int, FloatArray] = field(default_factory=dict)
    _best: dict[tuple[int, int], Candidate | None] = field(default_factory=dict)
    _partitions: dict[tuple[int, ...], Stages] = field(default_factory=dict)
    _shares: dict[tuple[int, Stages], FloatArray] = field(default_factory=dict)

    @cached_property
    def _chain(self) -> Chain:
        return Chain(task=self.task, pool=self.pool)

    @classmethod
    def of(cls, task: Task, quick_s: FloatArray, *, repartition: bool = True) -> Survey:
        """Look at a task whose quick bounds are known. With `repartition` the task's stages are only a start."""
        found = cls(task=task, repartition=repartition, pool=Pool(costed=task.costed), bounds_s=quick_s.copy())
        found._look()
        return found

    def best(self, at: int) -> Candidate | None:
        """The best plan known for a batch size."""
        key = (at, len(self.pool.plans))
        if key not in self._best:
            self._best[key] = next(self._candidates(at), None)
        return self._best[key]

    def _candidates(self, at: int) -> Iterator[Candidate]:
        """Plans that fit, on their best stages, by their objective on the task's."""
        values = [self._value_s(number)[at] for number in range(len(self.pool.plans))]
        for number in sorted(range(len(values)), key=lambda each: (values[each], each)):
            if not np.isfinite(values[number]):
                break
            plan = self.pool.plans[number]
            value_s, stages = float(values[number]), self.task.stages
            if self.repartition and len(stages) > 1:
                value_s, counts = self._chain.best(plan, at)
                if not np.isfinite(value_s):
                    continue
                stages = self._stages(counts)
            if self._share(plan, stages)[at] <= 1.0:
                yield Candidate(value_s=value_s, decisions=plan, stages=stages)

    def _value_s(self, number: int) -> FloatArray:
        if number not in self._values_s:
            self._values_s[number] = self.pool.value_s(self.task, self.pool.plans[number])
        return self._values_s[number]

    def _stages(self, counts: tuple[int, ...]) -> Stages:
        """The stages of so many layers each: one record for each partition, which is quick to compare."""
        if counts not in self._partitions:
            self._partitions[counts] = partition(self.task.costed.blocks, counts)
        return self._partitions[counts]

    def _share(self, plan: Decisions, stages: Stages) -> FloatArray:
        """How full the fullest memory is at each batch size."""
        key = (id(plan), stages)
        if key not in self._shares:
            self._shares[key] = self._chain.known(plan)[1].share(stages)
        return self._shares[key]

    def _look(self) -> None:
        ats = np.flatnonzero(np.isfinite(self.bounds_s)).tolist()
        anchors = _anchors(self.task.costed.batches, ats)
        if not anchors:
            return
        try:
            dual = Dual(self.task.costed, anchors, self.task.keep)
        except (PlacementError, LimitReached):
            return
        shares = (0.5,) if self.task.objective == "sum" else (_SHARE,) if dual.far else _SHARES
        points = tuple((at, Weights(local=share, exposed=1.0 - share)) for at in anchors for share in shares)
        load = max(self.task.loads, key=lambda each: sum(each.counts.values()))
        try:
            minima = dual.minima(self.task, load, points, LIMIT)
        except (PlacementError, LimitReached):
            return
        for found in minima:
            if np.isfinite(found.value):
                self.pool.add(found.decisions)
        if len(self.task.stages) == 1:
            self._note(points, [found.value for found in minima])
        elif self.repartition:
            self._note(points, self._chain.bounds(dual, points, LIMIT))

    def _note(self, points: Points, bounds: Sequence[float]) -> None:
        scale = 2.0 if self.task.objective == "sum" else 1.0
        for (at, _), bound in zip(points, bounds):
            self.bounds_s[at] = max(self.bounds_s[at], scale * bound)


def _anchors(batches: Sequence[int], ats: Sequence[int]) -> list[int]:
    """Some batch sizes, far enough apart, the first and the last among them."""
    out: list[int] = []
    for at in ats[:-1]:
        if not out or batches[at] >= _APART * batches[out[-1]]:
            out.append(at)
    return [*out, *ats[-1:]]
