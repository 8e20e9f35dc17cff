"""Branch and bound on the dual: closes what weights alone leave open between the best plan and the bound.

The dual's bound is one on mixtures of plans: where one plan has more of C and another more of N, a mixture evens them
out, and no plan need do so. So a kernel on which the two differ is split: its modes with less local time are one
branch, those with more the other one, and each is minimised anew, for its kind of block only. The bound of a branch is,
over the layouts of port groups, the least of what the best of some fixed weights promises; the branch with the least
bound is split next, until that is near the best plan. What is minimised on the way are plans that no weights find.

States are dropped beforehand that another one replaces under all of the weights. That is sound in every branch: of any
plan, one is left that costs no more under each of the weights, and the branch that has it has no higher bound. So are
those with which no plan is faster than the best one known (`extractors.worthwhile`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

import numpy as np

from rooflang.errors import LimitReached
from rooflang.extractors.dual import ABSENT, dual, shared_groups
from rooflang.extractors.forms import KindForm, Points, Weights
from rooflang.extractors.fronts import Fronts, Option
from rooflang.extractors.kept import Kept
from rooflang.extractors.layouts import FloatArray, IntArray
from rooflang.extractors.plans import block_s
from rooflang.extractors.sweep import Sweep
from rooflang.extractors.tables import Tables
from rooflang.extractors.task import Decisions, Load, Task
from rooflang.extractors.worthwhile import Line, eliminated, worthwhile

#: Odds of C against N in the weights, as multiples of those under which the bound was highest; and where tables are
#: large.
_ODDS, _FEW_ODDS = (0.02, 0.25, 0.5, 0.75, 1.0, 1.33, 2.0, 4.0, 50.0), (0.5, 1.0, 2.0)

#: Odds at which states are left out that no plan worth finding has.
_NEAR_ODDS = (1.0, 0.75, 1.33)

#: Most entries of tables: over all layouts of port groups; in an elimination, a point and in all. Large are only those
#: of kinds with few blocks, once it is known what is worth while, and these are hardly ever split.
_MOST, _LARGEST, _IN_ALL = 1_000_000, 64_000_000, 400_000_000

#: Entries of tables that are kept in all (8 bytes each).
_KEPT = 60_000_000

#: A branch is followed downwards while its bound is within this part of the way from the least one to the best plan.
_PLUNGE = 0.25

#: Layouts of the port groups that several kinds of block share, by number, in the order of the groups.
Place = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A lower bound on the objective of some plans, and the layouts of port groups and the slowest stage there."""

    bound_s: float
    place: Place
    load: Load


class Goal(Protocol):
    """What branches are measured by: the stages of a task, or all partitions into stages."""

    @property
    def value_s(self) -> float:
        """The objective of the best plan known."""

    @property
    def cutoff_s(self) -> float:
        """The objective from which on plans do not matter."""

    def line(self, exposed: FloatArray) -> Line:
        """A lower bound on the objective that is linear in the costs of blocks, under some weights of N."""

    def done(self, bound_s: float) -> bool:
        """Is a bound near enough?"""

    def floor(self, values: Mapping[str, FloatArray], exposed: FloatArray) -> Floor:
        """The lower bound that follows from the least costs of one block of each kind, (weights, layouts of the port
        groups …), under some weights of N."""

    def offer(self, decisions: Decisions) -> None:
        """Take a plan, if it is the best so far."""


class Fixed:
    """The goal of a sweep: the stages of its task. A relative gap of `enough` ends it, too."""

    def __init__(self, sweep: Sweep, enough: float) -> None:
        self.sweep, self.task, self.enough = sweep, sweep.task, enough
        self._sends: dict[tuple[int, bytes], FloatArray] = {}

    @property
    def value_s(self) -> float:
        return self.sweep.value_s

    @property
    def cutoff_s(self) -> float:
        return self.sweep.cutoff_s

    def line(self, exposed: FloatArray) -> Line:
        loads = self.task.slowest
        number = max(range(len(loads)), key=lambda each: sum(loads[each].counts.values()))
        counts = {name: count or ABSENT for name, count in loads[number].counts.items()}
        return Line(counts=counts, added=self._fixed(number, exposed))

    def done(self, bound_s: float) -> bool:
        self.sweep.bound_s = max(self.sweep.bound_s, bound_s)
        return self.sweep.done or self.value_s <= self.sweep.bound_s * (1.0 + self.enough)

    def offer(self, decisions: Decisions) -> None:
        self.sweep.offer(decisions)

    def floor(self, values: Mapping[str, FloatArray], exposed: FloatArray) -> Floor:
        loads = self.task.slowest
        stages = [
            sum(((load.counts[name] or ABSENT) * value for name, value in values.items()), self._fixed(number, exposed))
            for number, load in enumerate(loads)
        ]
        best = np.array([stage.max(axis=0) for stage in stages])
        slowest = best.max(axis=0)
        place = tuple(int(number) for number in np.unravel_index(int(slowest.argmin()), slowest.shape))
        load = loads[int(column(best, place).argmax())]
        return Floor(bound_s=float(slowest[place]), place=place, load=load)

    def _fixed(self, number: int, exposed: FloatArray) -> FloatArray:
        """What a stage sends under the weights, by the layouts of port groups; infinite where one is fixed
        otherwise."""
        key = (number, exposed.tobytes())
        if key not in self._sends:
            task, load = self.task, self.task.slowest[number]
            groups = shared_groups(task.costed)
            total: FloatArray = np.zeros([len(exposed)] + [1] * len(groups))
            for axis, (group, specs) in enumerate(groups.items(), start=1):
                seconds = np.zeros(len(specs))
                for send in load.sends:
                    if send.group == group:
                        seconds = seconds + [task.send_s(send, spec) for spec in specs]
                if group in task.boundary:
                    seconds = seconds + np.where([spec == task.boundary[group] for spec in specs], 0.0, np.inf)
                shape = [1] * (len(groups) + 1)
                shape[axis] = len(specs)
                total = total + exposed.reshape([-1] + [1] * len(groups)) * seconds.reshape(shape)
            self._sends[key] = total
        return self._sends[key]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """A kind of block of which the states `alive` are left: `value` is the least cost of one block, (weights, layouts
    of the port groups …), of length 1 along groups that the kind lacks."""

    form: KindForm
    alive: tuple[IntArray, ...]
    value: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Branch:
    """What is left of each kind of block, and the bound on it."""

    parts: Mapping[str, _Part]
    floor: Floor


@dataclass(kw_only=True, eq=False)
class Branching:
    """The search of a task's plans by branches towards a goal; `share` of C is where its dual is highest.

    Raises `LimitReached` where there are too many layouts, and at a limit, with the bound so far.
    """

    task: Task
    goal: Goal
    share: float
    _fronts: Fronts = field(default_factory=Fronts)
    _seen: set[object] = field(default_factory=set)
    _tables: Kept[_Part, Tables] = field(default_factory=lambda: Kept(_KEPT))
    _known: dict[tuple[_Part, Place], dict[int, IntArray]] = field(default_factory=dict)
    _alive: dict[str, list[IntArray]] | None = None

    def __post_init__(self) -> None:
        task = self.task
        self._groups = shared_groups(task.costed)
        self._forms = dual(task.costed, task.at, task.keep).forms
        if len(_ODDS) * np.prod([float(len(specs)) for specs in self._groups.values()]) > _MOST:
            raise LimitReached("too many layouts between blocks", where="extraction")
        self._most_s = min(self.goal.value_s, self.goal.cutoff_s)
        for odds in (_ODDS, _FEW_ODDS):
            self._points = self._weighed(odds)
            self._local, self._exposed = _weights(self._points)
            with suppress(LimitReached):
                self._alive = self._worthwhile()
                return
        raise LimitReached("too many layouts for branches", where="extraction")

    def _weighed(self, odds: Sequence[float]) -> Points:
        """The weights with some multiples of the odds under which the dual was highest; those of C + N."""
        if self.task.objective == "sum":
            return ((self.task.at, Weights(local=1.0, exposed=1.0)),)
        times = np.array(odds) * self.share / (1.0 - self.share)
        shares = (times / (1.0 + times)).tolist()
        return tuple((self.task.at, Weights(local=share, exposed=1.0 - share)) for share in shares)

    def _worthwhile(self) -> dict[str, list[IntArray]] | None:
        """The states of each kind that a plan worth finding can have; None if there is no such plan."""
        ends = (self._points[0], self._points[-1])
        alive = {name: form.alive(ends) for name, form in self._forms.items()}
        near = self._weighed(_NEAR_ODDS)
        line = self.goal.line(_weights(near)[1])
        left = worthwhile(self._forms, self._groups, alive, near, line, self._most_s, _LARGEST, self.task.check)
        if left is None:
            return None
        alive = {name: form.alive(ends, left[name]) for name, form in self._forms.items()}
        sizes = [form.tables((), alive[name]).largest(self._kept(form)) for name, form in self._forms.items()]
        if len(self._points) * max(sizes) > _IN_ALL:
            raise LimitReached("too many layouts for branches", where="extraction")
        return alive

    def _kept(self, form: KindForm) -> list[int]:
        """The variables of the port groups that a kind shares."""
        return [form.borders[group] for group in self._groups if group in form.borders]

    def run(self, branches: int) -> None:
        """Split up to so many branches, or until the goal is reached."""
        if self._alive is None:
            self.goal.done(self._most_s)
            return
        whole = {name: self._part(form, self._alive[name]) for name, form in self._forms.items()}
        now: _Branch | None = self._branch(whole)
        turn, waiting = count(), list[tuple[float, int, _Branch]]()
        whole_s = np.inf  # the least bound of branches that cannot be split
        for _ in range(branches):
            open_s = min(waiting[0][0] if waiting else np.inf, np.inf if now is None else now.floor.bound_s)
            if self.goal.done(min(open_s, whole_s, self.goal.value_s, self._most_s)) or np.isinf(open_s):
                return
            branch = heappop(waiting)[2] if now is None else now
            now = None
            split = self._split(branch)
            if split is None:
                whole_s = min(whole_s, branch.floor.bound_s)
                continue
            children = [self._child(branch, part) for part in split]
            children.sort(key=lambda child: child.floor.bound_s)
            if children[0].floor.bound_s <= open_s + _PLUNGE * (self.goal.value_s - open_s):
                now = children.pop(0)
            for child in children:
                heappush(waiting, (child.floor.bound_s, next(turn), child))
        open_s = min(waiting[0][0] if waiting else np.inf, np.inf if now is None else now.floor.bound_s)
        self.goal.done(min(open_s, whole_s, self.goal.value_s, self._most_s))

    def _child(self, branch: _Branch, part: _Part) -> _Branch:
        child = self._branch({**branch.parts, part.form.kind.kind.name: part})
        bound_s = max(branch.floor.bound_s, child.floor.bound_s)
        return replace(child, floor=replace(child.floor, bound_s=bound_s))

    def _part(self, form: KindForm, alive: Sequence[IntArray]) -> _Part:
        tables, value = self._eliminated(form, alive)
        part = _Part(form=form, alive=tuple(alive), value=value)
        self._tables.put(part, tables)
        return part

    def _eliminated(self, form: KindForm, alive: Sequence[IntArray]) -> tuple[Tables, FloatArray]:
        self.task.check()
        return eliminated(form, self._groups, self._points, alive, _LARGEST)

    def _states(self, part: _Part, place: Place) -> dict[int, IntArray]:
        """For each variable of a kind the best states at the weights, under layouts of the shared port groups."""
        own = self._at(part, place)
        if (part, own) not in self._known:
            tables = self._tables.get(part, lambda: self._eliminated(part.form, part.alive)[0])
            borders, fixed = part.form.borders, dict[int, IntArray]()
            for group, at in zip(self._groups, place):
                if group in borders:
                    fixed[borders[group]] = np.full(len(part.value), np.searchsorted(part.alive[borders[group]], at))
            states = tables.states(fixed)
            self._known[part, own] = {variable: part.alive[variable][chosen] for variable, chosen in states.items()}
        return self._known[part, own]

    def _branch(self, parts: Mapping[str, _Part]) -> _Branch:
        values = {name: part.value for name, part in parts.items()}
        return _Branch(parts=parts, floor=self.goal.floor(values, self._exposed))

    def _split(self, branch: _Branch) -> tuple[_Part, ...] | None:
        """Split the kernel that makes most of the difference between two neighbouring weights, of which one has a plan
        with more of C than of N and the other one with less. None where there is nothing to split: under the
        weights of C + N alone the bound is what the plan takes."""
        load, place = branch.floor.load, branch.floor.place
        states = {name: self._states(part, place) for name, part in branch.parts.items()}
        self._offer(branch, states)
        if len(self._points) == 1:
            return None
        local = {name: self._local_s(part.form, states[name]) for name, part in branch.parts.items()}
        least = sum(
            load.counts[name] * column(part.value, self._at(part, place)) for name, part in branch.parts.items()
        )
        more = sum(load.counts[name] * seconds.sum(axis=0) for name, seconds in local.items())
        exposed = (least - self._local * more) / self._exposed + self._sends_s(load, dict(zip(self._groups, place)))
        after = int(np.clip(np.count_nonzero(more >= exposed), 1, len(more) - 1))  # C falls as it weighs more
        gains = [
            (load.counts[name] * abs(float(steps[after] - steps[after - 1])), name, row)
            for name, seconds in local.items()
            for row, steps in enumerate(seconds)
        ]
        gain, name, row = max(gains, key=lambda each: each[0])
        if not gain > 0.0:
            return None
        part, (before_s, after_s) = branch.parts[name], local[name][row, after - 1 : after + 1]
        variable, modes = list(part.form.makes.values())[row]
        own = _seconds(part.form, modes)[part.alive[variable]]
        halves = []
        for mask in (own <= (before_s + after_s) / 2.0, own > (before_s + after_s) / 2.0):
            alive = [states[mask] if number == variable else states for number, states in enumerate(part.alive)]
            halves.append(self._part(part.form, alive))
        return tuple(halves)

    def _at(self, part: _Part, place: Place) -> Place:
        """The place in a kind's values of layouts of the port groups."""
        return tuple(number if group in part.form.borders else 0 for group, number in zip(self._groups, place))

    def _local_s(self, form: KindForm, states: Mapping[int, IntArray]) -> FloatArray:
        """C of the kernels that make a kind's values, (values, weights)."""
        return np.array([_seconds(form, modes)[states[variable]] for variable, modes in form.makes.values()])

    def _sends_s(self, load: Load, place: Mapping[int, int]) -> float:
        return sum(self.task.send_s(send, self._groups[send.group][place[send.group]]) for send in load.sends)

    def _offer(self, branch: _Branch, states: Mapping[str, Mapping[int, IntArray]]) -> None:
        """Offer the best combination of the kinds' plans that are known for the branch's layouts between blocks."""
        place = dict(zip(self._groups, branch.floor.place))
        keys = {}
        for name, part in branch.parts.items():
            keys[name] = (name, self._at(part, branch.floor.place))
            for option in self._options(name, part.form, states[name]):
                self._fronts.add(keys[name], option)
        for load in [branch.floor.load, *(other for other in self.task.slowest if other is not branch.floor.load)]:
            for value_s, chosen in self._fronts.best(self.task.objective, keys, load, self._sends_s(load, place)):
                if value_s < self.goal.value_s:
                    boundary = {group: specs[place[group]] for group, specs in self._groups.items()}
                    for option in chosen.values():
                        boundary |= option.boundary
                    choices = {name: option.choice for name, option in chosen.items()}
                    self.goal.offer(Decisions(choices=choices, boundary=boundary))

    def _options(self, name: str, form: KindForm, states: Mapping[int, IntArray]) -> list[Option]:
        """The plans of a kind at the weights that were not seen before."""
        rows = {variable: array.tolist() for variable, array in states.items()}
        out = []
        for point in range(len(self._points)):
            now = {variable: chosen[point] for variable, chosen in rows.items()}
            choice = {value: modes[now[v]] for value, (v, modes) in form.makes.items() if now[v] < len(modes)}
            boundary = {group: self.task.costed.borders[group][now[v]] for group, v in form.borders.items()}
            key = (name, tuple(choice.items()), tuple(boundary.items()))
            if key not in self._seen:
                self._seen.add(key)
                local, exposed = block_s(form.kind, choice, boundary)
                seconds = float(local[self.task.at]), float(exposed[self.task.at])
                out.append(Option(choice=choice, boundary=boundary, seconds=seconds))
        return out


def _weights(points: Points) -> tuple[FloatArray, FloatArray]:
    """The weights of C and those of N."""
    local, exposed = zip(*((weights.local, weights.exposed) for _, weights in points))
    return np.array(local), np.array(exposed)


def column(table: FloatArray, place: Place) -> FloatArray:
    """What a table (rows, layouts …) says at a place."""
    for number in place:
        table = table[:, number]
    return table


def _seconds(form: KindForm, modes: Sequence[int]) -> FloatArray:
    """C of the states of a variable: of its modes, and of "not made"."""
    own = form.kind.local_s[list(modes), form.ats[0]]
    return np.append(np.where(np.isfinite(own), own, 0.0), 0.0)


def branched(sweep: Sweep, branches: int, enough: float = 0.0) -> None:
    """Close the gap of a sweep, as far as so many branches do, or until it is small `enough`.

    Raises `LimitReached` where there are too many layouts.
    """
    Branching(task=sweep.task, goal=Fixed(sweep, enough), share=sweep.share).run(branches)
    if not sweep.done:
        sweep.polish()
