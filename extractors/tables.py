"""Minimise a sum of small tables by eliminating one variable after the other, at many points at once.

A *point* is a case for which all entries have other values (a batch size, weights): every table has a leading axis over
the points, of length 1 where they share it. Exact while no table grows beyond a limit. Beyond it a variable's tables
are minimised in groups, which gives a lower bound (mini-buckets: Dechter and Rish, 2003), and states found by going
through the tables greedily.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from rooflang.extractors.layouts import BoolArray, FloatArray, IntArray

Names = tuple[int, ...]
Table = tuple[Names, FloatArray]

#: Sums of tables up to this many entries, and up to this part of the whole, are written out before they are minimised.
_SMALL, _SMALL_PART = 16_384, 8

#: Entries that are minimised at a time: what stays in a core's cache.
_CHUNK = 32_768

#: Rows from this length on are added up where they lie.
_ROW = 256

#: Rounds in which states are dropped (more find little), and variables with more states than this are left alone, as
#: comparing them takes time quadratic in their number.
_ROUNDS, _MANY = 4, 250

#: Times that all variables are gone through after a search among bounds.
_DESCENTS = 20

#: In sums, this stands for an impossible state: far above all costs, and not so far that they are lost in rounding.
_NEVER = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An eliminated variable, the tables in which its best state is found once the others are known, and the one that
    it `left`: None where they were split."""

    variable: int
    tables: tuple[Table, ...]
    left: Table | None


class Tables:
    """A sum of tables over variables with few states, at `points` points. Impossible states cost infinity."""

    def __init__(self, points: int = 1) -> None:
        self.exact = True
        self._points, self._first = np.arange(points), np.zeros(points, np.int64)
        self._count: list[int] = []
        self._tables: list[Table] = []
        self._before: list[Table] = []
        self.steps: list[Step] = []

    @property
    def entries(self) -> int:
        """Numbers in the tables that are kept for finding states."""
        return sum(table.size for step in self.steps for _, table in step.tables)

    def variable(self, states: int) -> int:
        """A new variable with that many states."""
        self._count.append(states)
        return len(self._count) - 1

    def add(self, names: Sequence[int], table: FloatArray) -> None:
        """Add a table; its axes are the points (or 1) and the variables `names`."""
        order = sorted(range(len(names)), key=lambda axis: names[axis])
        self._tables.append((tuple(names[axis] for axis in order), table.transpose(0, *(axis + 1 for axis in order))))

    def alive(self, keep: Sequence[int]) -> list[IntArray]:
        """For each variable the states that can matter at the points and, as tables are linear in their weights, at all
        weights between them: those of which no other one is at least as good at all points, whatever the other
        variables do (Goldstein's criterion for dead ends). Variables in `keep` stay as they are."""
        states = [np.arange(count) for count in self._count]
        near = self._near()
        waiting = sorted(near.keys() - set(keep), key=lambda v: (-self._count[v], v))
        tables = list(self._tables)
        for _ in range(_ROUNDS):
            changed = []
            for variable in waiting:
                good = _undominated(variable, tables, len(states[variable]))
                if not good.all():
                    changed.append(variable)
                    states[variable] = states[variable][good]
                    for place, (names, table) in enumerate(tables):
                        if variable in names:
                            tables[place] = (names, np.compress(good, table, axis=names.index(variable) + 1))
            again = set().union(*(near[variable] for variable in changed)) - set(keep)
            waiting = [variable for variable in waiting if variable in again]
        return states

    @property
    def counts(self) -> tuple[int, ...]:
        """How many states each variable has."""
        return tuple(self._count)

    @property
    def parts(self) -> tuple[Table, ...]:
        """The tables; after an elimination those that it left."""
        return tuple(self._tables)

    def largest(self, keep: Sequence[int], counts: Sequence[int] | None = None) -> int:
        """Entries a point of the largest table that `eliminate` would have without a limit; with other numbers of
        states, if they are given."""
        near, of = self._near(), self._count if counts is None else counts
        left, most = set(near) - set(keep), 0
        sizes = {variable: math.prod(of[name] for name in near[variable]) for variable in left}
        while left:
            variable = min(left, key=lambda v: (sizes[v], v))
            left.remove(variable)
            most = max(most, sizes[variable])
            around = near.pop(variable) - {variable}
            for other in around:
                near[other] = (near[other] | around) - {variable}
                sizes[other] = math.prod(of[name] for name in near[other])
        return most

    def _near(self) -> dict[int, set[int]]:
        """For each variable those that share a table with it, itself included."""
        near: dict[int, set[int]] = {variable: {variable} for variable in range(len(self._count))}
        for names, _ in self._tables:
            for name in names:
                near[name].update(names)
        return near

    def eliminate(self, keep: Sequence[int], limit: int) -> FloatArray:
        """Minimise over all variables but `keep`; returns a table over the points and those, in their order.

        It is a lower bound, and `exact` turns False, where a table would have had more than `limit` entries a point.
        """
        self._before = list(self._tables)
        near = self._near()
        left = set(near) - set(keep)
        sizes = {variable: self._size(near[variable]) for variable in left}
        while left:
            variable = min(left, key=lambda v: (sizes[v], v))
            left.remove(variable)
            self._eliminate(variable, limit)
            for other in near.pop(variable) - {variable}:
                near[other] = {other}.union(*(names for names, _ in self._tables if other in names))
                sizes[other] = self._size(near[other])
        joined = self._join(self._tables, tuple(sorted(keep)))
        return np.transpose(joined, [0, *(np.argsort(np.argsort(keep)) + 1)])

    def states(self, kept: Mapping[int, IntArray]) -> dict[int, IntArray]:
        """The best state of every variable at each point, given those of the ones that were kept. Where tables were
        split, the states need not be the best, nor possible."""
        place = dict(kept)
        for step in reversed(self.steps):
            place[step.variable] = self._best_states(step.variable, step.tables, place)
        if not self.exact:
            self._descend(place, set(kept))
        return place

    def _descend(self, place: dict[int, IntArray], kept: set[int]) -> None:
        """Move one variable after the other to its best states, given the others, until none moves."""
        mine = {v: [table for table in self._before if v in table[0]] for v in place if v not in kept}
        for _ in range(_DESCENTS):
            moved = False
            for variable, tables in mine.items():
                best = self._best_states(variable, tables, place)
                moved |= bool((best != place[variable]).any())
                place[variable] = best
            if not moved:
                return

    def _best_states(self, variable: int, tables: Iterable[Table], place: Mapping[int, IntArray]) -> IntArray:
        """The states with which some tables have the least sum at each point, the other variables' being given."""
        total = np.zeros((len(self._points), self._count[variable]))
        for names, table in tables:
            which = [slice(None) if name == variable else place[name] for name in names]
            total += np.minimum(table[(self._points if len(table) > 1 else self._first, *which)], _NEVER)
        return np.asarray(total.argmin(axis=1))

    def _size(self, names: Iterable[int]) -> int:
        return math.prod(self._count[name] for name in names)

    def _eliminate(self, variable: int, limit: int) -> None:
        mine = [table for table in self._tables if variable in table[0]]
        self._tables = [table for table in self._tables if variable not in table[0]]
        groups = self._groups(mine, variable, limit)
        left = self._folded(mine, variable) if len(groups) == 1 else None
        self.steps.append(Step(variable=variable, tables=tuple(mine), left=left))
        if left is not None:
            self._tables.append(left)
            return
        self.exact = False
        scopes = [_scope(tables, variable) for tables in groups]
        joined = [(names, self._join(tables, names)) for names, tables in zip(scopes, groups)]
        for (names, table), shift in zip(joined, _shifts(joined, variable)):
            rest = tuple(name for name in names if name != variable)
            self._tables.append((rest, _least_shifted(names, table, variable, shift)))

    def _groups(self, tables: list[Table], variable: int, limit: int) -> list[list[Table]]:
        if not tables or self._size(_scope(tables, variable)) <= limit:
            return [tables]
        groups: list[list[Table]] = []
        for table in sorted(tables, key=lambda t: -self._size(t[0])):
            for group in groups:
                if self._size(_scope([*group, table], variable)) <= limit:
                    group.append(table)
                    break
            else:
                groups.append([table])
        return groups

    def _join(self, tables: Sequence[Table], names: Names) -> FloatArray:
        """The sum of tables over the variables `names`, smallest tables first."""
        parts = [_aligned(table, names) for table in sorted(tables, key=lambda t: t[1].size)]
        total = sum(parts[1:], parts[0]) if parts else np.zeros([1] * (len(names) + 1))
        return np.broadcast_to(total, (total.shape[0], *(self._count[name] for name in names)))

    def _folded(self, tables: Sequence[Table], variable: int) -> Table:
        """The sum of tables minimised over one of their variables.

        State by state, so that no table over all of the variables is ever written; which state was the best is looked
        up later, for few of the others' states.
        """
        groups = self._written_out(tables, variable)
        rest = self._order(groups, variable)
        parts = []
        for group in groups:
            total = _aligned(group[0], [variable, *rest])
            for table in group[1:]:
                total = total + _aligned(table, [variable, *rest])
            parts.append(total)
        shape = [self._count[name] for name in rest]
        if len(parts) < 2:
            least = parts[0].min(axis=1) if parts else np.zeros((1, *shape))
        else:
            least = np.empty((max(map(len, parts)), *shape))
            with _in_place():
                _fold([np.ascontiguousarray(part).swapaxes(0, 1) for part in parts], least)
        names = tuple(sorted(rest))
        return names, np.transpose(least, [0, *(rest.index(name) + 1 for name in names)])

    def _written_out(self, tables: Sequence[Table], variable: int) -> list[list[Table]]:
        """The tables in groups whose sums are so small that they are written out; smaller ones are added up first."""
        points = max((len(table) for _, table in tables), default=1)
        large = max(_SMALL, points * self._size(_scope(tables, variable)) // _SMALL_PART)
        groups: list[list[Table]] = []
        for table in sorted(tables, key=lambda t: t[1].size):
            both = [*groups[-1], table] if groups else []
            if both and max(len(each) for _, each in both) * self._size(_scope(both, variable)) <= large:
                groups[-1] = both
            else:
                groups.append([table])
        return groups

    def _order(self, groups: Sequence[Sequence[Table]], variable: int) -> list[int]:
        """The variables of some groups of tables but one: side by side those that the same groups have, so that each of
        these runs through their entries or stays with one; the most entries come last, for a long inner loop."""
        having: dict[int, list[int]] = {}
        for number, group in enumerate(groups):
            for name in _scope(group, variable):
                having.setdefault(name, []).append(number)
        alike: dict[tuple[int, ...], list[int]] = {}
        for name in sorted(having.keys() - {variable}):
            alike.setdefault(tuple(having[name]), []).append(name)
        return [name for names in sorted(alike.values(), key=self._size) for name in names]


def _undominated(variable: int, tables: Iterable[Table], count: int) -> BoolArray:
    """Mask of the states of a variable that no other one is at least as good as; of equals the first one stays."""
    if not 1 < count <= _MANY:
        return np.ones(count, bool)
    worse = np.zeros((1, count, count))  # [p, i, k]: how much worse than i, at point p, k can be at most
    for names, table in tables:
        if variable in names:
            flat = _by_state(names, table, variable)
            cost = np.minimum(flat, _NEVER)
            # Where i is impossible, it cannot be the better one.
            base = np.where(np.isinf(flat), 2.0 * _NEVER, flat)
            worse = worse + (cost[:, :, None, :] - base[:, :, :, None]).max(axis=1)
    most, order = worse.max(axis=0), np.arange(count)
    beaten = (most < 0.0) | ((most == 0.0) & (order[None, :] < order[:, None]))
    np.fill_diagonal(beaten, False)
    good = ~beaten.any(axis=1)
    good[0] |= not good.any()  # all are impossible
    return np.asarray(good)


def _by_state(names: Names, table: FloatArray, variable: int) -> FloatArray:
    """The entries by point, states of all other variables, and state of one, which lie side by side."""
    axis = names.index(variable) + 1
    others = (each for each in range(1, table.ndim) if each != axis)
    return np.ascontiguousarray(table.transpose(0, *others, axis)).reshape(len(table), -1, table.shape[axis])


@contextmanager
def _in_place() -> Iterator[None]:
    """Arithmetic on rows where they lie: where one is repeated, NumPy copies it to a buffer unless it is longer than
    that, which takes twice as long as to add it up."""
    before = np.setbufsize(_ROW)
    try:
        yield
    finally:
        np.setbufsize(before)


def _fold(parts: Sequence[FloatArray], least: FloatArray, axis: int = 0) -> None:
    """Write to `least` the minimum over the states (first axis) of a sum, in pieces that stay in a core's cache: cut
    along one axis after the other, from `axis` on."""
    if least.size > _CHUNK and axis < least.ndim:
        length = least.shape[axis]
        step = max(1, length * _CHUNK // least.size)
        for start in range(0, length, step):
            where = (slice(None),) * axis + (slice(start, start + step),)
            some = [part[:, *where] if part.shape[axis + 1] > 1 else part for part in parts]
            _fold(some, least[where], axis + 1)
        return
    first, second, *others = parts
    total = np.empty(least.shape)
    for state in range(len(first)):
        out = total if state else least
        np.add(first[state], second[state], out=out)
        for part in others:
            np.add(out, part[state], out=out)
        if state:
            np.minimum(least, total, out=least)


def _aligned(table: Table, order: Sequence[int]) -> FloatArray:
    """The entries with the points and the variables `order` as axes, of length 1 where the table lacks one."""
    names, entries = table
    moved = np.transpose(entries, [0, *(names.index(name) + 1 for name in order if name in names)])
    shape = iter(moved.shape[1:])
    return moved.reshape([len(moved), *(next(shape) if name in names else 1 for name in order)])


def _shifts(groups: Sequence[Table], variable: int) -> list[FloatArray]:
    """What is added to each group by point and state of the variable, so that all have the same minimum for each. The
    groups' sum stays, and the sum of their minima grows (moment matching: Ihler and others, 2012)."""
    least = [_least(names, table, variable) for names, table in groups]
    mean = sum(least[1:], least[0]) / len(least)  # infinite where any group says that the state is impossible
    return [np.where(np.isinf(mean), np.inf, mean - np.where(np.isinf(own), 0.0, own)) for own in least]


def _least(names: Names, table: FloatArray, variable: int) -> FloatArray:
    """The minimum by point and state of a variable: over the others before it, then over those after it."""
    axis = names.index(variable) + 1
    flat = table.reshape(len(table), math.prod(table.shape[1:axis]), table.shape[axis], -1)
    return np.asarray((flat.min(axis=1) if flat.shape[1] > 1 else flat[:, 0]).min(axis=2))


def _least_shifted(names: Names, table: FloatArray, variable: int, shift: FloatArray) -> FloatArray:
    """The minimum over a variable of a table to which the shift of each state is added; the sum is never written."""
    moved = np.moveaxis(table, names.index(variable) + 1, 1)
    least = np.empty((max(len(table), len(shift)), *moved.shape[2:]))
    parts = moved, shift.reshape(*shift.shape, *[1] * (table.ndim - 2))
    with _in_place():
        _fold([part.swapaxes(0, 1) for part in parts], least)
    return least


def _scope(tables: Iterable[Table], variable: int) -> Names:
    """The variables of some tables, and one more."""
    return tuple(sorted({variable}.union(*(names for names, _ in tables))))


def serving(serves: BoolArray, layouts: Sequence[int]) -> FloatArray:
    """The table (menus, states): 0 where a menu serves the layout that a state wants (-1: nothing), infinity
    elsewhere."""
    wanted = np.array(layouts, np.int64)
    good = serves[:, np.maximum(wanted, 0)] | (wanted < 0)[None, :]
    return np.where(good, 0.0, np.inf)
