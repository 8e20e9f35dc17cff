"""Small improvements of decisions: one kernel at a time takes another mode, if that makes the slowest stage faster.

The dual's plans are the best for some weights of C against N. The best plan for max(C, N) need not be one of them: it
may have a few kernels in a mode that is slightly worse in sum and evens out C and N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rooflang.extractors.costed import CostedKind
from rooflang.extractors.plans import needed_modes
from rooflang.extractors.task import Decisions, Seconds, Task, combined
from rooflang.extractors.trees import serve

#: Times that all kernels of all kinds are gone through.
_ROUNDS = 8

#: A change has to gain more than this part of the objective.
_WORTH = 1e-6


class _Block:
    """One kind of block with its choice, and what changes of it cost."""

    def __init__(self, task: Task, kind: CostedKind, decisions: Decisions) -> None:
        self.kind, self.at = kind, task.at
        self.used = needed_modes(kind, decisions.choices[kind.kind.name])
        self._boundary = decisions.boundary
        self._readers: dict[int, list[int]] = {}
        for value, mode in self.used.items():
            for read in kind.modes[mode].reads:
                self._readers.setdefault(read.value, []).append(value)
        self._known: dict[tuple[int, int, tuple[int, ...]], float] = {}
        self._usable = [bool(local < float("inf")) for local in kind.local_s[:, task.at]]
        if task.keep is not None:
            name = kind.kind.name
            self._usable = [u and task.keep(name, m.mode) for u, m in zip(self._usable, kind.modes)]

    def changes(self) -> Iterator[tuple[int, int, Seconds]]:
        """(value, other mode for it, by how much C and N grow), for kernels that read the same values."""
        for value, now in self.used.items():
            reads = [read.value for read in self.kind.modes[now].reads]
            around = {value, *reads}
            before = self._network_s(around)
            for mode in self.kind.makers[value]:
                other = self.kind.modes[mode]
                if mode == now or not self._usable[mode] or [read.value for read in other.reads] != reads:
                    continue
                self.used[value] = mode
                after = self._network_s(around)
                self.used[value] = now
                local, exposed = (
                    float(table[mode, self.at] - table[now, self.at])
                    for table in (self.kind.local_s, self.kind.exposed_s)
                )
                yield value, mode, (local, exposed + after - before)

    def _network_s(self, values: set[int]) -> float:
        """Seconds of the transfers of some values."""
        return sum(self._serve(value, *self._wanted(value)) for value in values)

    def _wanted(self, value: int) -> tuple[int, tuple[int, ...]]:
        item = self.kind.values[value]
        number = item.layouts.number
        made = number[self._boundary[item.port]] if item.port >= 0 else self.kind.modes[self.used[value]].out
        targets = {number[self._boundary[group]] for _, group in item.exits}
        for reader in self._readers.get(value, ()):
            targets.update(read.layout for read in self.kind.modes[self.used[reader]].reads if read.value == value)
        return made, tuple(sorted(targets))

    def _serve(self, value: int, made: int, targets: tuple[int, ...]) -> float:
        key = (value, made, targets)
        if key not in self._known:
            seconds = self.kind.values[value].layouts.closure.seconds[:, :, self.at]
            self._known[key] = serve(seconds, made, targets)[0]
        return self._known[key]


def polished(task: Task, decisions: Decisions, stages: Sequence[Seconds], enough_s: float) -> Decisions:
    """Decisions at least as good. `stages` are C and N of `task.slowest`; it stops at an objective of `enough_s`."""
    # What no stage runs may have been left without a plan.
    names = [name for name in task.costed.kinds if any(load.counts[name] for load in task.loads)]
    blocks = {name: _Block(task, task.costed.kinds[name], decisions) for name in names}
    now = list(stages)
    for _ in range(_ROUNDS):
        before = _worst(task, now)
        for name, block in blocks.items():
            counts = [load.counts[name] for load in task.slowest]
            options = [
                (_worst(task, then), value, mode, then)
                for value, mode, (local, exposed) in block.changes()
                for then in [[(c + k * local, n + k * exposed) for k, (c, n) in zip(counts, now)]]
            ]
            worst, value, mode, then = min(options, key=lambda option: option[0], default=(math.inf, 0, 0, now))
            if worst < _worst(task, now) * (1.0 - _WORTH):
                block.used[value], now = mode, then
        if _worst(task, now) <= enough_s or _worst(task, now) == before:
            break
    choices = {**decisions.choices, **{name: block.used for name, block in blocks.items()}}
    return Decisions(choices=choices, boundary=decisions.boundary)


def _worst(task: Task, stages: Sequence[Seconds]) -> float:
    return max(combined(task.objective, *seconds) for seconds in stages)
