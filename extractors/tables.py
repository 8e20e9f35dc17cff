"""Minimise a sum of small tables: drop states that cannot matter, then eliminate one variable after the other.

Exact while no table grows beyond a limit. Beyond it a variable's tables are minimised in groups, which gives a lower
bound (mini-buckets: Dechter and Rish, 2003), and states found by going through the tables greedily.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.extractors.layouts import BoolArray, FloatArray, IntArray

Names = tuple[int, ...]
Table = tuple[Names, FloatArray]

#: Rounds in which states are dropped; more find little.
_ROUNDS = 4

#: Sums of tables up to this size, and up to this part of the whole, are written out before they are minimised.
_SMALL, _SMALL_PART = 16_384, 8

#: Times that all variables are gone through after a search among bounds.
_DESCENTS = 20

#: In sums, this stands for an impossible state: far above all costs, and not so far that they are lost in rounding.
_NEVER = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """An eliminated variable and the tables in which its best state is found once the others are known."""

    variable: int
    tables: tuple[Table, ...]


class Tables:
    """A sum of tables over variables with few states. Impossible states cost infinity."""

    def __init__(self) -> None:
        self.exact = True
        self._states: list[IntArray] = []
        self._rivals: dict[int, IntArray] = {}
        self._tables: list[Table] = []
        self._before: list[Table] = []
        self._steps: list[_Step] = []

    def variable(self, states: int, rivals: IntArray | None = None) -> int:
        """A new variable with that many states. Row i of `rivals` are states (-1: none) that i is compared with when
        states are dropped; by default with all, which takes time quadratic in their number."""
        self._states.append(np.arange(states))
        if rivals is not None:
            self._rivals[len(self._states) - 1] = rivals
        return len(self._states) - 1

    def add(self, names: Sequence[int], table: FloatArray) -> None:
        """Add a table; its axes are the variables `names`."""
        self._tables.append((tuple(sorted(names)), np.transpose(table, np.argsort(names))))

    # -- states that cannot matter ------------------------------------------------------------------------------------

    def reduce(self, keep: Sequence[int]) -> None:
        """Drop states of all variables but `keep` that another state is at least as good as, whatever the others do
        (Goldstein's criterion for dead ends). The minimum stays."""
        near = self._near()
        waiting = sorted(near.keys() - set(keep), key=lambda v: (-len(self._states[v]), v))
        for _ in range(_ROUNDS):
            changed = [variable for variable in waiting if self._reduce(variable)]
            again = set().union(*(near[variable] for variable in changed)) - set(keep)
            waiting = [variable for variable in waiting if variable in again]

    def _near(self) -> dict[int, set[int]]:
        """For each variable those that share a table with it, itself included."""
        near: dict[int, set[int]] = {variable: {variable} for variable in range(len(self._states))}
        for names, _ in self._tables:
            for name in names:
                near[name].update(names)
        return near

    def _reduce(self, variable: int) -> bool:
        count = len(self._states[variable])
        if count == 1:
            return False
        against = self._against(variable)
        worse = np.zeros(against.shape)  # [i, k]: how much worse than i its k-th rival can be at most
        for names, table in self._tables:
            if variable in names:
                flat = np.moveaxis(table, names.index(variable), 0).reshape(count, -1)
                never = np.isinf(flat)
                cost = np.where(never, _NEVER, flat)
                # Where i is impossible, it cannot be the better one.
                base = np.where(never, 2.0 * _NEVER, flat)
                worse += (cost[against] - base[:, None, :]).max(axis=2)
        states = np.arange(count)[:, None]
        # Of states that are as good as each other the first one stays.
        beaten = (worse < 0.0) | ((worse == 0.0) & (against < states))
        alive = ~(beaten & (against != states)).any(axis=1)
        alive[0] |= not alive.any()  # all are impossible
        if alive.all():
            return False
        self._states[variable] = self._states[variable][alive]
        for place, (names, table) in enumerate(self._tables):
            if variable in names:
                self._tables[place] = (names, np.compress(alive, table, axis=names.index(variable)))
        return True

    def _against(self, variable: int) -> IntArray:
        """With which states each state is compared, (states, rivals); itself where there is none."""
        states = self._states[variable]
        count = len(states)
        if variable not in self._rivals:
            return np.broadcast_to(np.arange(count), (count, count))
        place = np.full(self._rivals[variable].max() + 2, -1)
        known = states[states < len(place) - 1]
        place[known] = np.arange(len(known))
        rivals = place[self._rivals[variable][states]]
        return np.where(rivals >= 0, rivals, np.arange(count)[:, None])

    # -- elimination
    # ----------------------------------------------------------------------------------------------------

    def eliminate(self, keep: Sequence[int], limit: int) -> FloatArray:
        """Minimise over all variables but `keep`; returns a table over those, in their order.

        It is a lower bound, and `exact` turns False, where a table would have had more than `limit` entries.
        """
        self._before = list(self._tables)
        near = self._near()
        left = set(near) - set(keep)
        sizes = {variable: self._size(near[variable]) for variable in left}
        while left:
            variable = min(left, key=lambda v: (sizes[v], v))
            left.remove(variable)
            self._eliminate(variable, limit)
            around = near.pop(variable) - {variable}
            for other in around:
                near[other] = {other}.union(*(names for names, _ in self._tables if other in names))
                sizes[other] = self._size(near[other])
        joined = _join(self._tables, tuple(sorted(keep)), self._shape(sorted(keep)))
        return np.transpose(joined, np.argsort(np.argsort(keep)))

    def states(self, kept: Mapping[int, int]) -> dict[int, int]:
        """The best state of every variable, given those of the ones that were kept. Where tables were split, the states
        need not be the best, nor possible."""
        place = dict(kept)
        for step in reversed(self._steps):
            place[step.variable] = _best_state(step.variable, step.tables, place, len(self._states[step.variable]))
        if not self.exact:
            self._descend(place, set(kept))
        return {variable: int(self._states[variable][state]) for variable, state in place.items()}

    def _descend(self, place: dict[int, int], kept: set[int]) -> None:
        """Move one variable after the other to its best state, given the others, until none moves."""
        mine = {v: [table for table in self._before if v in table[0]] for v in place if v not in kept}
        for _ in range(_DESCENTS):
            moved = False
            for variable, tables in mine.items():
                best = _best_state(variable, tables, place, len(self._states[variable]))
                moved |= best != place[variable]
                place[variable] = best
            if not moved:
                return

    def _shape(self, names: Iterable[int]) -> tuple[int, ...]:
        return tuple(len(self._states[name]) for name in names)

    def _size(self, names: Iterable[int]) -> int:
        return math.prod(self._shape(names))

    def _eliminate(self, variable: int, limit: int) -> None:
        mine = [table for table in self._tables if variable in table[0]]
        self._tables = [table for table in self._tables if variable not in table[0]]
        self._steps.append(_Step(variable=variable, tables=tuple(mine)))
        groups = self._groups(mine, variable, limit)
        if len(groups) == 1:
            self._tables.append(_folded(mine, variable, len(self._states[variable])))
            return
        self.exact = False
        for names, joined in _matched([self._joined(tables, variable) for tables in groups], variable):
            rest = tuple(name for name in names if name != variable)
            self._tables.append((rest, joined.min(axis=names.index(variable))))

    def _joined(self, tables: list[Table], variable: int) -> Table:
        names = _scope(tables, variable)
        return names, _join(tables, names, self._shape(names))

    def _groups(self, tables: list[Table], variable: int, limit: int) -> list[list[Table]]:
        if not tables or self._size(_scope(tables, variable)) <= limit:
            return [tables]
        groups: list[list[Table]] = []
        for table in sorted(tables, key=lambda t: -t[1].size):
            for group in groups:
                if self._size(_scope([*group, table], variable)) <= limit:
                    group.append(table)
                    break
            else:
                groups.append([table])
        return groups


def _matched(groups: list[Table], variable: int) -> list[Table]:
    """The groups with costs moved between them, so that each has the same minimum for each state of the variable. Their
    sum stays, and the sum of their minima grows (moment matching: Ihler and others, 2012)."""
    least = []
    for names, table in groups:
        axis = names.index(variable)
        least.append(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1).min(axis=1))
    mean = np.mean(least, axis=0)  # infinite where any group says that the state is impossible
    out = []
    for (names, table), own in zip(groups, least):
        shift = np.where(np.isinf(mean), np.inf, mean - np.where(np.isinf(own), 0.0, own))
        out.append((names, table + shift.reshape([-1 if name == variable else 1 for name in names])))
    return out


def _best_state(variable: int, tables: Iterable[Table], place: Mapping[int, int], count: int) -> int:
    """The state with which some tables have the least sum, the other variables' states being given."""
    total = np.zeros(count)
    for names, table in tables:
        mine = table[tuple(slice(None) if name == variable else place[name] for name in names)]
        total = total + np.where(np.isinf(mine), _NEVER, mine)
    return int(total.argmin())


def _scope(tables: Iterable[Table], variable: int) -> Names:
    """The variables of some tables, and one more."""
    return tuple(sorted({variable}.union(*(names for names, _ in tables))))


def _join(tables: Sequence[Table], names: Names, shape: tuple[int, ...]) -> FloatArray:
    """The sum of tables over the variables `names`, smallest tables first."""
    total: FloatArray = np.zeros([1] * len(names))
    for own, table in sorted(tables, key=lambda t: t[1].size):
        total = total + table.reshape([size if name in own else 1 for name, size in zip(names, shape)])
    return np.broadcast_to(total, shape)


def _folded(tables: Sequence[Table], variable: int, count: int) -> Table:
    """The sum of tables minimised over one of their variables, which has `count` states.

    State by state, so that no table over all of the variables is ever written; which state was the best is looked up
    later, for few of the others' states.
    """
    sizes = {name: size for names, table in tables for name, size in zip(names, table.shape)}
    rest = sorted(sizes.keys() - {variable}, key=lambda name: (sizes[name], name))  # the longest inner loop last
    order = [variable, *rest]
    aligned = [_aligned(table, order) for table in sorted(tables, key=lambda t: t[1].size)]
    large = max(_SMALL, math.prod(sizes[name] for name in rest) * count // _SMALL_PART)
    parts: list[FloatArray] = []
    for table in aligned:  # smaller ones are added up first
        if parts and math.prod(np.broadcast_shapes(parts[-1].shape, table.shape)) <= large:
            parts[-1] = parts[-1] + table
        else:
            parts.append(table)
    if len(parts) < 2:
        least = parts[0].min(axis=0) if parts else np.zeros(())
    else:
        least = np.full([sizes[name] for name in rest], np.inf)
        total = np.empty_like(least)
        for state in range(count):
            np.add(parts[0][state], parts[1][state], out=total)
            for part in parts[2:]:
                np.add(total, part[state], out=total)
            np.minimum(least, total, out=least)
    names = tuple(sorted(rest))
    return names, np.transpose(least, [rest.index(name) for name in names])


def _aligned(table: Table, order: Sequence[int]) -> FloatArray:
    """The entries with the variables `order` as axes, of length 1 where the table lacks one."""
    names, entries = table
    mine = [name for name in order if name in names]
    moved = np.transpose(entries, [names.index(name) for name in mine])
    shape = iter(moved.shape)
    return moved.reshape([next(shape) if name in names else 1 for name in order])


def serving(serves: BoolArray, layouts: Sequence[int]) -> FloatArray:
    """The table (menus, states): 0 where a menu serves the layout that a state wants (-1: nothing), infinity
    elsewhere."""
    wanted = np.array(layouts, np.int64)
    good = serves[:, np.maximum(wanted, 0)] | (wanted < 0)[None, :]
    return np.where(good, 0.0, np.inf)
