"""Plans by the dual: which weights of C against N to try, and the best plan that comes of it.

`sum` needs one pair of weights. For `max` the weights are found as the dual's maximum is, by the plans on either side
of C = N; then the kinds of block may take different ones of the plans found, so that the slack of one makes up for
another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rooflang.extractors.dual import Dual, dual
from rooflang.extractors.forms import Weights
from rooflang.extractors.memory import fullest, overflow
from rooflang.extractors.plans import block_s, stage_s
from rooflang.extractors.polish import polished
from rooflang.extractors.task import Choice, Decisions, Load, Seconds, Task, combined
from rooflang.ir.cut import Spec

#: Share of C in the weights with which a sweep begins: plans that are good for most workloads.
FIRST = 0.8

#: Shares beyond which C or N alone decides, the step down from the first one, the most that the share of N shrinks in a
#: step up, how near to the ends of an interval a new one may lie (as a part of it), and an interval that is not worth
#: dividing.
_LEAST, _MOST, _STEP, _RUSH, _INSIDE, _CLOSE = 1e-3, 1.0 - 1e-3, 0.2, 1 / 256, 0.1, 2e-3

#: Weights that are tried at most for one stage.
_TRIES = 9

#: Prices of all of a rank's memory, as shares of the objective: the first one, the factor to the next, and how many.
_CHEAP, _DEARER, _PRICES = 0.05, 4.0, 7

#: How many of the best plans are improved kernel by kernel.
_POLISHED = 4

#: Most combinations of block plans that are compared.
_COMBINATIONS = 4000


@dataclass(kw_only=True, eq=False)
class Sweep:
    """The state of a sweep: the best decisions so far with their objective, and a lower bound on it.

    `tight` says that faster ones did not fit into memory, `exact` that the last weights' minimum was one and not a
    bound. `leanest` are the decisions that need the least memory of those looked at.
    """

    task: Task
    dual: Dual
    gap: float
    cutoff_s: float
    best: Decisions | None = None
    tight: bool = False
    value_s: float = float("inf")
    bound_s: float = 0.0
    exact: bool = True
    leanest: Decisions | None = None
    _least: float = float("inf")
    _bounds: dict[float, float] = field(default_factory=dict)
    _found: dict[float, Decisions] = field(default_factory=dict)
    _offered: dict[float, Decisions] = field(default_factory=dict)
    _costs: dict[object, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, *, limit: int, gap: float, cutoff_s: float = float("inf")) -> Sweep:
        """A sweep that has not begun; `limit` is that of the `Dual`.

        Raises `PlacementError` where some value cannot be made in any layout.
        """
        return cls(task=task, dual=dual(task.costed, task.at, task.keep, limit), gap=gap, cutoff_s=cutoff_s)

    @property
    def done(self) -> bool:
        """Is the gap closed, or the bound so high that the plan does not matter?"""
        return self.value_s <= self.bound_s * (1.0 + self.gap) or self.bound_s >= self.cutoff_s

    def run(self) -> None:
        """Try weights until the gap is closed or nothing more is to be had."""
        waiting = list(self.task.slowest)
        while waiting and not self.done:
            load = self._critical(waiting)
            waiting.remove(load)
            if self.task.objective == "sum":
                self._try(load, 0.5)
            else:
                self._balance(load)
        self.combine()

    def scan(self, shares: Sequence[float]) -> None:
        """Try some shares of C in the weights, each for the stage that is then the slowest."""
        for share in shares:
            if not self.done:
                self._try(self._critical(self.task.slowest), share)

    def combine(self) -> None:
        """Look for better plans near those found, until the gap is closed."""
        if not self.done:
            self._mix()
        if not self.done:
            self._polish()

    def _critical(self, loads: Sequence[Load]) -> Load:
        """The stage that is the slowest under the best plan so far; before there is one, that with most blocks."""
        best = self.best
        if best is None:
            return max(loads, key=lambda load: sum(load.counts.values()))
        return max(loads, key=lambda load: combined(self.task.objective, *self.stage_s(load, best)))

    def refine(self, limit: int) -> None:
        """Where tables were too large to be exact, allow them to be larger, for the weights with the highest bound."""
        if self.done or self.exact:
            return
        self.dual = dual(self.task.costed, self.task.at, self.task.keep, limit)
        share = max(self._bounds, key=lambda each: self._bounds[each])
        self._found = {share: self._found[share]} if share in self._found else {}
        for load in self.task.slowest:
            self._try(load, share)
        self.combine()

    def squeeze(self) -> None:
        """Where no plan found fits, raise the price of memory until one does.

        Raises `CapacityError`, which says what is missing, where what has to rest in memory alone does not fit.
        """
        capacity, waves = self.task.capacity_bytes, len(self.task.stages)
        load = max(self.task.loads, key=lambda each: sum(each.counts.values()))
        rests = Weights(local=0.0, exposed=0.0, byte=1.0 / capacity, wave_byte=waves / capacity)
        leanest = self.dual.minimum(self.task, load, rests)
        self.offer(leanest.decisions)
        if leanest.value > 1.0 and self.leanest is not None:
            raise overflow(self.task, fullest(self.task, self.leanest))
        share = max(self._found, default=FIRST)
        price = self.bound_s / capacity * _CHEAP
        for _ in range(_PRICES):
            dear = Weights(local=share, exposed=1.0 - share, byte=price, wave_byte=price * waves, live_byte=price)
            if self.offer(self.dual.minimum(self.task, load, dear).decisions):
                return
            price *= _DEARER

    def _balance(self, load: Load) -> None:
        """Move between the plans on either side of C = N to where their weighted costs meet (Kelley's method: that is
        where the dual is highest, as far as these plans tell)."""
        low, high = _LEAST, _MOST  # C exceeds N below, N exceeds C above
        below: Seconds | None = None
        above: Seconds | None = None
        share = FIRST
        for _ in range(_TRIES):
            costs = self._try(load, share)
            if self.done:
                return
            if costs[0] >= costs[1]:
                low, below = share, costs
            else:
                high, above = share, costs
            if high - low < _CLOSE:
                return
            if below is None:
                share = max(_LEAST, share - _STEP)
            elif above is None:
                share = min(_MOST, 1.0 - (1.0 - share) * max(_RUSH, (costs[1] / costs[0]) ** 2))
            else:
                margin = _INSIDE * (high - low)
                meet = (above[1] - below[1]) / ((above[1] - below[1]) + (below[0] - above[0]))
                share = min(max(meet, low + margin), high - margin)

    def _try(self, load: Load, share: float) -> Seconds:
        """Minimise share·C + (1 − share)·N of a stage; returns C and N of the plan.

        Raises `PlacementError` where the task has no plan.
        """
        found = self.dual.minimum(self.task, load, Weights(local=share, exposed=1.0 - share))
        bound = found.value * (2.0 if self.task.objective == "sum" else 1.0)
        self._bounds[share] = max(bound, self._bounds.get(share, 0.0))
        self.bound_s = max(self.bound_s, bound)
        self.exact = found.exact
        self._found[share] = found.decisions
        self.offer(found.decisions)
        return self.stage_s(load, found.decisions)

    def plans(self, count: int) -> list[Decisions]:
        """The best plans found, whether they fit or not."""
        return [self._offered[value] for value in sorted(self._offered)[:count]]

    def offer(self, decisions: Decisions) -> bool:
        """Take decisions if they are the best so far and fit into memory; do they fit?"""
        value = max(combined(self.task.objective, *self.stage_s(load, decisions)) for load in self.task.slowest)
        if not np.isfinite(value):
            return False
        self._offered.setdefault(value, decisions)
        if value >= self.value_s:
            return True
        full = fullest(self.task, decisions).share
        if full < self._least:
            self.leanest, self._least = decisions, full
        if full > 1.0:
            self.tight = True
            return False
        self.best, self.value_s = decisions, value
        return True

    def stage_s(self, load: Load, decisions: Decisions) -> Seconds:
        """C and N of a stage."""
        kinds = {name: self._block_s(name, choice, decisions.boundary) for name, choice in decisions.choices.items()}
        return stage_s(self.task, load, kinds, decisions.boundary)

    def _block_s(self, name: str, choice: Choice, boundary: Mapping[int, Spec]) -> Seconds:
        kind = self.task.costed.kinds[name]
        groups = {g for value in kind.values for g in (value.port, *(group for _, group in value.exits)) if g >= 0}
        key = (name, tuple(choice.items()), tuple((group, boundary[group]) for group in sorted(groups)))
        if key not in self._costs:
            self._costs[key] = block_s(kind, choice, boundary, self.task.at)
        return self._costs[key]

    def _polish(self) -> None:
        """Improve the best plans kernel by kernel."""
        for decisions in self.plans(_POLISHED):
            stages = [self.stage_s(load, decisions) for load in self.task.slowest]
            self.offer(polished(self.task, decisions, stages, self.bound_s * (1.0 + self.gap)))
            if self.done:
                return

    def _mix(self) -> None:
        """Under the boundaries of the plans found, let each kind take the plan of any of the weights that were
        tried."""
        boundaries = {tuple(sorted(found.boundary.items())): found.boundary for found in self._found.values()}
        for boundary in boundaries.values():
            for mixed in self._mixes(boundary):
                self.offer(mixed)

    def _mixes(self, boundary: Mapping[int, Spec]) -> list[Decisions]:
        """The best combinations under a boundary, one for each stage that can be the slowest."""
        options = {name: self._options(name, boundary) for name in self.task.costed.kinds}
        out = []
        for load in self.task.slowest:
            sends = stage_s(self.task, load, dict.fromkeys(options, (0.0, 0.0)), boundary)
            partial: list[tuple[float, float, dict[str, tuple[Choice, dict[int, Spec]]]]] = [(*sends, {})]
            for name, mine in options.items():
                count = load.counts[name]
                grown = [
                    (c + count * own[0], n + count * own[1], {**chosen, name: plan})
                    for c, n, chosen in partial
                    for own, plan in mine
                ]
                partial = _undominated(grown)[:_COMBINATIONS]
            if partial:
                _, _, chosen = min(partial, key=lambda item: combined(self.task.objective, item[0], item[1]))
                own = {group: spec for _, border in chosen.values() for group, spec in border.items()}
                choices = {name: choice for name, (choice, _) in chosen.items()}
                out.append(Decisions(choices=choices, boundary={**boundary, **own}))
        return out

    def _options(self, name: str, boundary: Mapping[int, Spec]) -> list[tuple[Seconds, tuple[Choice, dict[int, Spec]]]]:
        """C, N and the choices of a kind's best plans under a boundary, for all weights that were tried."""
        found = []
        borders = self.task.costed.borders
        for share in self._found:
            dual = self.dual.kind(name, ((self.task.at, Weights(local=share, exposed=1.0 - share)),))
            fixed = {group: np.array([borders[group].index(boundary[group])]) for group in dual.groups}
            ((choice, place),) = dual.decode(fixed)
            own = {group: borders[group][number] for group, number in place.items()}
            found.append((self._block_s(name, choice, {**boundary, **own}), (choice, own)))
        return found


_Mix = tuple[float, float, dict[str, tuple[Choice, dict[int, Spec]]]]


def _undominated(items: list[_Mix]) -> list[_Mix]:
    """Those that no other one equals or beats in both C and N."""
    out: list[_Mix] = []
    for item in sorted(items, key=lambda each: each[:2]):
        if not out or item[1] < out[-1][1]:
            out.append(item)
    return out
