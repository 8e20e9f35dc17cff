"""Plans by the dual: which weights of C against N to try, and the best plan that comes of it.

`sum` needs one pair of weights. For `max` the weights are those at which the dual would be highest if there were no
plans but those known (Kelley's method); then the kinds of block may take different ones of the plans found, so that the
slack of one makes up for another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rooflang.extractors.dual import Minimum, dual
from rooflang.extractors.forms import Weights
from rooflang.extractors.fronts import undominated
from rooflang.extractors.memory import fullest
from rooflang.extractors.polish import polished
from rooflang.extractors.pool import Pool
from rooflang.extractors.squeeze import squeeze
from rooflang.extractors.task import Choice, Decisions, Load, Seconds, Task, combined
from rooflang.ir.cut import Spec

#: Share of C in the weights with which a sweep begins that knows no plans: good for most workloads.
FIRST = 0.8

#: Shares beyond which C or N alone decides; where all plans known have more of one than of the other: the step down
#: from the last share, and the most that the share of N shrinks in a step up.
_LEAST, _MOST, _STEP, _RUSH = 1e-3, 1.0 - 1e-3, 0.2, 1 / 256

#: Shares that differ by less are one.
_CLOSE = 1e-6

#: Weights that are tried at most for one stage.
_TRIES = 9

#: How many of the best plans are improved kernel by kernel.
_POLISHED = 4

#: Most combinations of block plans that are compared.
_COMBINATIONS = 4000


@dataclass(kw_only=True, eq=False)
class Sweep:
    """The state of a sweep: the best decisions so far with their objective, and a lower bound on it.

    `limit` is the number of entries that a table of the dual may have. `tight` says that faster decisions did not fit
    into memory, `exact` that the last weights' minimum was one and not a bound. `leanest` are the decisions that need
    the least memory of those looked at.
    """

    task: Task
    pool: Pool
    limit: int
    gap: float
    cutoff_s: float = float("inf")
    best: Decisions | None = None
    tight: bool = False
    value_s: float = float("inf")
    bound_s: float = 0.0
    exact: bool = True
    leanest: Decisions | None = None
    _least: float = float("inf")
    _bounds: dict[float, float] = field(default_factory=dict)
    _found: dict[float, Decisions] = field(default_factory=dict)

    @classmethod
    def of(
        cls, task: Task, *, limit: int, gap: float, cutoff_s: float = float("inf"), pool: Pool | None = None
    ) -> Sweep:
        """A sweep that knows the plans of `pool`, which all have to keep to what the task fixes."""
        sweep = cls(task=task, pool=pool or Pool(costed=task.costed), limit=limit, gap=gap, cutoff_s=cutoff_s)
        for _, plan in sweep.pool.ranked(task):
            if sweep.offer(plan):
                break
        return sweep

    @property
    def done(self) -> bool:
        """Is the gap closed, or the bound so high that the plan does not matter?"""
        return self.value_s <= self.bound_s * (1.0 + self.gap) or self.bound_s >= self.cutoff_s

    @property
    def share(self) -> float:
        """The share of C in the weights whose bound was the highest."""
        return max(self._bounds, key=lambda share: self._bounds[share], default=FIRST)

    def run(self) -> None:
        """Try weights until the gap is closed or nothing more is to be had.

        Raises `PlacementError` where the task has no plan.
        """
        waiting = list(self.task.slowest)
        while waiting and not self.done:
            load = self._critical(waiting)
            waiting.remove(load)
            if self.task.objective == "sum":
                self._try(load, 0.5)
            else:
                self._balance(load, _TRIES)
        self.combine()

    def scan(self, shares: Sequence[float]) -> None:
        """Try some shares of C in the weights, each for the stage that is then the slowest."""
        for share in shares:
            if not self.done:
                self._try(self._critical(self.task.slowest), share)

    def probe(self) -> None:
        """Try the most promising weights only."""
        if not self.done:
            load = self._critical(self.task.slowest)
            self._balance(load, 1) if self.task.objective == "max" else self._try(load, 0.5)

    def combine(self) -> None:
        """Look for better plans near those found, until the gap is closed."""
        if not self.done:
            self._mix()
        if not self.done:
            self.polish()

    def _critical(self, loads: Sequence[Load]) -> Load:
        """The stage that is the slowest under the best plan so far; before there is one, that with most blocks."""
        best = self.best
        if best is None:
            return max(loads, key=lambda load: sum(load.counts.values()))
        return max(loads, key=lambda load: combined(self.task.objective, *self.stage_s(load, best)))

    def refine(self, limit: int) -> None:
        """Where tables were too large to be exact, allow them to be larger: for the weights with the highest bound, and
        from there on, for what was found so far may have led astray."""
        if self.done or self.exact:
            return
        self.limit = limit
        share = self.share
        self._found = {share: self._found[share]} if share in self._found else {}
        for load in self.task.slowest:
            self._try(load, share)
            if not self.done and self.exact and self.task.objective == "max":
                self._balance(load, _TRIES)
        self.combine()

    def squeeze(self) -> None:
        """Where no plan found fits, look for some that do, under a price of memory.

        Raises `CapacityError`, which says what is missing, where what has to rest in memory alone does not fit.
        """
        squeeze(self)

    def _balance(self, load: Load, tries: int) -> None:
        """Move to where the dual is highest, as far as the plans known tell."""
        lines = _lines(self.task, self.pool, load)
        share = _next_share(lines, FIRST) if lines else FIRST
        for _ in range(tries):
            seconds = self._try(load, share)
            lines += [seconds] if np.isfinite(sum(seconds)) else []
            last, share = share, _next_share(lines, share) if lines else share - _STEP
            if self.done or abs(share - last) < _CLOSE:
                return

    def _try(self, load: Load, share: float) -> Seconds:
        """Minimise share·C + (1 − share)·N of a stage; returns C and N of the plan.

        Raises `PlacementError` where the task has no plan.
        """
        found = self._minimum(load, Weights(local=share, exposed=1.0 - share))
        bound = found.value * (2.0 if self.task.objective == "sum" else 1.0)
        self._bounds[share] = max(bound, self._bounds.get(share, 0.0))
        self.bound_s = max(self.bound_s, bound)
        self.exact = found.exact
        self._found[share] = found.decisions
        self.offer(found.decisions)
        return self.stage_s(load, found.decisions)

    def _minimum(self, load: Load, weights: Weights) -> Minimum:
        task = self.task
        return dual(task.costed, task.at, task.keep).minimum(task, load, weights, self.limit)

    def plans(self, count: int) -> list[Decisions]:
        """The best plans known, whether they fit or not."""
        return [plan for _, plan in self.pool.ranked(self.task)[:count]]

    def offer(self, decisions: Decisions) -> bool:
        """Take decisions if they are the best so far and fit into memory; do they fit?"""
        value = float(self.pool.value_s(self.task, decisions)[self.task.at])
        if not np.isfinite(value):
            return False
        self.pool.add(decisions)
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
        local, exposed = self.pool.stage_s(self.task, load, decisions)
        return float(local[self.task.at]), float(exposed[self.task.at])

    def block_s(self, name: str, choice: Choice, boundary: Mapping[int, Spec]) -> Seconds:
        """C and N of a block of a kind."""
        local, exposed = self.pool.block_s(name, choice, boundary)
        return float(local[self.task.at]), float(exposed[self.task.at])

    def polish(self) -> None:
        """Improve the best plans kernel by kernel."""
        for decisions in self.plans(_POLISHED):
            self.task.check()
            stages = [self.stage_s(load, decisions) for load in self.task.slowest]
            self.offer(polished(self.task, decisions, stages, self.bound_s * (1.0 + self.gap)))
            if self.done:
                return

    def _mix(self) -> None:
        """Under the boundaries of the plans found, let each kind take the plan of any of the weights that were tried,
        or of any plan known that has the boundary."""
        boundaries = {tuple(sorted(found.boundary.items())): found.boundary for found in self._found.values()}
        for boundary in boundaries.values():
            self.task.check()
            for mixed in self._mixes(boundary):
                self.offer(mixed)

    def _mixes(self, boundary: Mapping[int, Spec]) -> list[Decisions]:
        """The best combinations under a boundary, one for each stage that can be the slowest."""
        options = {
            name: [(self.block_s(name, choice, {**boundary, **own}), (choice, own)) for choice, own in choices]
            for name, choices in ((name, self._options(name, boundary)) for name in self.task.costed.kinds)
        }
        out = []
        for load in self.task.slowest:
            sends = sum(self.task.send_s(send, boundary[send.group]) for send in load.sends)
            partial: list[_Mix] = [(0.0, sends, {})]
            for name, mine in options.items():
                count = load.counts[name]
                grown = [
                    (c + count * own[0], n + count * own[1], {**chosen, name: plan})
                    for c, n, chosen in partial
                    for own, plan in mine
                ]
                partial = undominated(grown)[:_COMBINATIONS]
            if partial:
                _, _, chosen = min(partial, key=lambda item: combined(self.task.objective, item[0], item[1]))
                own = {group: spec for _, border in chosen.values() for group, spec in border.items()}
                choices = {name: choice for name, (choice, _) in chosen.items()}
                out.append(Decisions(choices=choices, boundary={**boundary, **own}))
        return out

    def _options(self, name: str, boundary: Mapping[int, Spec]) -> Iterator[tuple[Choice, dict[int, Spec]]]:
        """Plans of a kind of block under a boundary, with the layouts of all of its port groups."""
        task, borders = self.task, self.task.costed.borders
        found = dual(task.costed, task.at, task.keep)
        for share in self._found:
            points = ((task.at, Weights(local=share, exposed=1.0 - share)),)
            mine = found.kind(name, points, self.limit)
            fixed = {group: np.array([borders[group].index(boundary[group])]) for group in mine.groups}
            ((choice, place),) = mine.decode(fixed)
            yield choice, {group: borders[group][number] for group, number in place.items()}
        groups = self.pool.groups(name)
        for plan in self.pool.plans:
            if all(plan.boundary[group] == boundary[group] for group in groups):
                yield plan.choices[name], {group: boundary[group] for group in groups}


_Mix = tuple[float, float, dict[str, tuple[Choice, dict[int, Spec]]]]


def promising_share(task: Task, pool: Pool) -> float:
    """The share of C at which the dual is highest, as far as the plans known tell, for the stage with most blocks."""
    lines = _lines(task, pool, max(task.slowest, key=lambda load: sum(load.counts.values())))
    return _next_share(lines, FIRST) if lines else FIRST


def _lines(task: Task, pool: Pool, load: Load) -> list[Seconds]:
    """C and N of a stage under the plans known that can be made."""
    plans = [pool.stage_s(task, load, plan) for plan in pool.plans]
    lines = [(float(local[task.at]), float(exposed[task.at])) for local, exposed in plans]
    return [seconds for seconds in lines if np.isfinite(sum(seconds))]


def _next_share(lines: Sequence[Seconds], last: float) -> float:
    """The share λ of C at which the least λ·C + (1 − λ)·N of some plans is highest. Where all of them have more of C
    than of N, or of N than of C, a step from the last share towards other plans."""
    local, exposed = np.array(lines).T
    rises = local >= exposed
    if rises.all():
        least = int((local - exposed).argmin())
        ratio = exposed[least] / local[least] if local[least] > 0 else 1.0
        return float(min(_MOST, 1.0 - (1.0 - last) * max(_RUSH, min(ratio**2, 0.5))))
    if not rises.any():
        return max(_LEAST, last - _STEP)
    up, down = np.flatnonzero(rises), np.flatnonzero(~rises)
    slope = local - exposed
    meets = ((exposed[down][None] - exposed[up][:, None]) / (slope[up][:, None] - slope[down][None])).ravel()
    meets = np.clip(meets, _LEAST, _MOST)
    heights = (meets[:, None] * slope[None] + exposed[None]).min(axis=1)
    return float(meets[heights.argmax()])
