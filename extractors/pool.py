"""Plans that were found for any batch size of a costed graph, with what they cost at all of them.

What is good at one batch size is often good, or nearly so, at the next: a search that knows such plans needs few
weights, and most configurations can be ruled out by a single bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.plans import block_s
from rooflang.extractors.task import Choice, Decisions, Load, Task
from rooflang.ir.cut import Spec

#: C and N at all batch sizes.
_Costs = tuple[FloatArray, FloatArray]


@dataclass(kw_only=True, eq=False)
class Pool:
    """The plans of one costed graph, in the order in which they came."""

    costed: CostedGraph
    plans: list[Decisions] = field(default_factory=list)
    _known: set[object] = field(default_factory=set)
    _blocks: dict[object, _Costs] = field(default_factory=dict)
    _groups: dict[str, list[int]] = field(default_factory=dict)

    def add(self, decisions: Decisions) -> None:
        """Keep a plan, unless it is there."""
        key = (
            tuple((name, tuple(choice.items())) for name, choice in decisions.choices.items()),
            tuple(sorted(decisions.boundary.items())),
        )
        if key not in self._known:
            self._known.add(key)
            self.plans.append(decisions)

    def groups(self, name: str) -> list[int]:
        """The port groups of a kind of block."""
        if name not in self._groups:
            values = self.costed.kinds[name].values
            found = {g for value in values for g in (value.port, *(group for _, group in value.exits)) if g >= 0}
            self._groups[name] = sorted(found)
        return self._groups[name]

    def block_s(self, name: str, choice: Choice, boundary: Mapping[int, Spec]) -> _Costs:
        """C and N of one block of a kind."""
        key = (name, tuple(choice.items()), tuple(boundary[group] for group in self.groups(name)))
        if key not in self._blocks:
            self._blocks[key] = block_s(self.costed.kinds[name], choice, boundary)
        return self._blocks[key]

    def stage_s(self, task: Task, load: Load, decisions: Decisions) -> _Costs:
        """C and N of a stage; kinds of block that it does not run do not count."""
        local = np.zeros(len(self.costed.batches))
        exposed = sum((task.sends_s(send, decisions.boundary[send.group]) for send in load.sends), np.zeros_like(local))
        for name, count in load.counts.items():
            if count:
                own = self.block_s(name, decisions.choices[name], decisions.boundary)
                local, exposed = local + count * own[0], exposed + count * own[1]
        return local, exposed

    def value_s(self, task: Task, decisions: Decisions) -> FloatArray:
        """The objective of a plan."""
        stages = [self.stage_s(task, load, decisions) for load in task.slowest]
        parts = [np.maximum(c, n) if task.objective == "max" else c + n for c, n in stages]
        return np.asarray(np.max(parts, axis=0))

    def ranked(self, task: Task, plans: Sequence[Decisions] | None = None) -> list[tuple[float, Decisions]]:
        """The objectives at the task's batch size of all plans that can be made there, and the plans, best first."""
        of = self.plans if plans is None else plans
        values = [float(self.value_s(task, plan)[task.at]) for plan in of]
        order = sorted(range(len(of)), key=lambda number: (values[number], number))
        return [(values[number], of[number]) for number in order if np.isfinite(values[number])]
