"""All contiguous partitions of a chain of layers into stages, as a goal of branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from rooflang.extractors.branch import Floor, Place, column
from rooflang.extractors.chain import Chain, cheapest
from rooflang.extractors.dual import shared_groups
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.memory import fullest
from rooflang.extractors.pool import Pool
from rooflang.extractors.task import Decisions, Send, Stages, Task
from rooflang.extractors.worthwhile import Line
from rooflang.place.grid import partition


class Partitions:
    """The best plan and partition known, with the objective `value_s`, and a bound over all of them. Good enough are a
    relative `gap` between the two, and a bound of `cutoff_s`."""

    def __init__(
        self,
        chain: Chain,
        pool: Pool,
        *,
        best: Decisions,
        stages: Stages,
        value_s: float,
        bound_s: float,
        gap: float,
        cutoff_s: float,
    ) -> None:
        self.chain, self.pool = chain, pool
        self.best, self.stages, self.value_s, self.bound_s = best, stages, value_s, bound_s
        self.gap, self.cutoff_s = gap, cutoff_s
        self._tasks: dict[tuple[int, ...], Task] = {}

    def done(self, bound_s: float) -> bool:
        """Is a bound near enough?"""
        self.bound_s = max(self.bound_s, bound_s)
        return self.value_s <= self.bound_s * (1.0 + self.gap) or self.bound_s >= self.cutoff_s

    def offer(self, decisions: Decisions) -> None:
        """Take a plan on its best partition, if it is the best so far and fits into memory."""
        self.pool.add(decisions)
        value_s, counts = self.chain.best(decisions)
        if value_s < self.value_s:
            task = self._task(counts)
            if fullest(task, decisions).share <= 1.0:
                self.best, self.stages, self.value_s = decisions, task.stages, value_s

    def line(self, exposed: FloatArray) -> Line:
        """The mean of all stages."""
        stages = len(self.chain.task.stages)
        counts = {name: float(total[-1]) / stages for name, total in self.chain.counts.items()}
        return Line(counts=counts, added=np.broadcast_to(self._excluded, (len(exposed), *self._excluded.shape)))

    def floor(self, values: Mapping[str, FloatArray], exposed: FloatArray) -> Floor:
        """The layouts between blocks of which the best partition is cheapest. Those for which even evenly filled
        stages would take longer than that are not asked for theirs."""
        counts, stages = self.chain.counts, len(self.chain.task.stages)
        even = sum((counts[name][-1] / stages * value for name, value in values.items()), np.zeros(1)).max(axis=0)
        best_s, found = np.inf, None
        even = even + self._excluded
        for number in even.argsort(axis=None, kind="stable"):
            place = tuple(int(each) for each in np.unravel_index(int(number), even.shape))
            if found is not None and even[place] >= best_s:
                break
            if np.isinf(even[place]):
                return Floor(bound_s=np.inf, place=place, load=self.chain.task.slowest[0])
            own = {name: column(value, _own(value, place)) for name, value in values.items()}
            tables = self._tables(own, place, exposed)
            value_s, layers = cheapest(tables)
            if found is None or value_s < best_s:
                ends = np.concatenate([[0], np.cumsum(layers)])
                slowest = max(range(stages), key=lambda s: float(tables[s][ends[s], ends[s + 1]]))
                best_s, found = value_s, (place, layers, slowest)
        assert found is not None
        place, layers, slowest = found
        return Floor(bound_s=best_s, place=place, load=self._task(layers).loads[slowest])

    @cached_property
    def _excluded(self) -> FloatArray:
        """Infinite for layouts between blocks that the task has fixed otherwise, 0 for the others."""
        task, groups = self.chain.task, shared_groups(self.chain.costed)
        out: FloatArray = np.zeros([len(specs) for specs in groups.values()])
        for axis, (group, specs) in enumerate(groups.items()):
            if group in task.boundary:
                shape = [-1 if number == axis else 1 for number in range(out.ndim)]
                out = out + np.where([spec == task.boundary[group] for spec in specs], 0.0, np.inf).reshape(shape)
        return out

    def _tables(self, values: Mapping[str, FloatArray], place: Place, exposed: FloatArray) -> FloatArray:
        """What stages take at least, (stages, layers + 1, layers + 1), where a block of a kind takes its value
        (weights,)."""
        size = len(self.chain.layers) + 1
        if not np.isfinite(list(values.values())).all():
            return np.full((len(self.chain.task.stages), size, size), np.inf)
        before = sum((values[name][:, None] * count for name, count in self.chain.counts.items()), np.zeros((1, size)))
        takes = before[:, None, :] - before[:, :, None]
        sent = sum(table[:, :, number] for table, number in zip(self._sends, place))
        more = exposed[:, None, None]
        stages = np.broadcast_to(sent, (len(self.chain.task.stages), size))
        return np.array([(takes + more * each).max(axis=0) for each in stages])

    @cached_property
    def _sends(self) -> list[FloatArray]:
        """For each of the port groups that kinds share what a stage sends of it, (stages, layers + 1, layouts), by
        where the stage ends."""
        task, known = self.chain.task, dict[Send, FloatArray]()
        out = []
        for group, specs in shared_groups(task.costed).items():
            table = np.zeros((len(task.stages), len(self.chain.sends), len(specs)))
            for stage in range(len(task.stages)):
                for cut, sends in enumerate(self.chain.sends):
                    for send in (Send(group=s.group, tensor=s.tensor, stage=stage) for s in sends if s.group == group):
                        if send not in known:
                            known[send] = np.array([task.send_s(send, spec) for spec in specs])
                        table[stage, cut] += known[send]
            out.append(table)
        return out

    def _task(self, layers: tuple[int, ...]) -> Task:
        """The task on a partition."""
        if layers not in self._tasks:
            task = self.chain.task
            self._tasks[layers] = replace(task, stages=partition(task.costed.blocks, layers))
        return self._tasks[layers]


def _own(value: FloatArray, place: Place) -> Place:
    """A place in values that may not depend on some port groups."""
    return tuple(number if size > 1 else 0 for number, size in zip(place, value.shape[1:]))
