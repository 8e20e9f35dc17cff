"""The few states that can matter, where tables would grow far too large to be eliminated.

Costs are moved between the tables that share a variable, so that all of them say the same about each of its states. The
sum stays, and the sum of the tables' minima, a lower bound on it, grows (max-sum diffusion: Kovalevsky and Koval; T.
Werner, "A linear programming approach to max-sum problem", 2007). What all tables then say of a state is how far every
choice of states with it is above that bound at least: its *excess*. States of much excess are left out. If the best
choice of the others is not above what one with those costs at least, it is the best of all; if it is, that is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.extractors.layouts import BoolArray, FloatArray, IntArray

#: Variables, and the costs of their states, (1, states of the first, states of the second, …).
Table = tuple[tuple[int, ...], FloatArray]

#: Rounds of diffusion, after which states are left out whose excess is above that part of the bound; half of it the
#: next time, and so on until the last.
_ROUNDS, WIDE, _LEAST = 6, 0.03, 1e-6

#: A round that raises the bound by less than this part is the last one.
_LITTLE = 1e-5

#: Relative rounding of bounds.
_ROUNDING = 1e-12

#: Variables with more states than this are looked through for needless ones, in tables of at most so many entries.
_MANY, _JOINED = 50, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Core:
    """For each variable the states that are left. What is least is so among them, or is at least `floor`."""

    alive: tuple[IntArray, ...]
    floor: float


class Diffusion:
    """Tables over the states that are `alive` of variables with `counts` states, among which costs are moved."""

    def __init__(self, counts: Sequence[int], tables: Sequence[Table]) -> None:
        self.alive = [np.arange(count) for count in counts]
        self.floor = math.inf
        self._names: list[tuple[int, ...]] = []
        self._tables: list[FloatArray] = []
        self._at: list[list[int]] = [[] for _ in counts]
        for names, table in sorted(tables, key=lambda each: -len(each[0])):
            if len(names) == 1 and self._at[names[0]]:
                self._add(self._at[names[0]][0], names[0], table[0])  # it is as good as a part of that one
            else:
                for name in names:
                    self._at[name].append(len(self._tables))
                self._names.append(names)
                self._tables.append(table[0].astype(np.float64))

    @property
    def core(self) -> Core:
        """The states that are left."""
        return Core(alive=tuple(self.alive), floor=self.floor * (1.0 - _ROUNDING))

    @property
    def bound(self) -> float:
        """What every choice of the states that are left costs at least."""
        return float(sum(table.min() for table in self._tables))

    def cut(self, part: float) -> bool:
        """Move costs, and leave out the states whose excess is above that part of the bound. Is anything possible?"""
        bound = self._diffuse()
        if math.isinf(bound):
            return False
        excess = self.excess()
        most = max(part * abs(bound), *(float(each.min()) for each in excess))  # no variable is left without a state
        if any((each > most).any() for each in excess):
            self.floor = min(self.floor, bound + most)
            self._keep([each <= most for each in excess])
        return True

    def excess(self) -> list[FloatArray]:
        """For each variable and state, how far at least a choice with it is above the bound."""
        out = []
        for variable, places in enumerate(self._at):
            total = np.zeros(len(self.alive[variable]))
            for place in places:
                total += self._least(place, variable) - self._tables[place].min()
            out.append(total)
        return out

    def thin(self, keep: Collection[int]) -> None:
        """Of variables that have many states, unless they are in `keep`, leave out those that are never the best,
        whatever the states of the variables that share a table with them."""
        for variable in range(len(self.alive)):
            if len(self.alive[variable]) > _MANY and variable not in keep:
                good = [np.ones(len(states), bool) for states in self.alive]
                good[variable] = self._ever_best(variable)
                self._keep(good)

    def _ever_best(self, variable: int) -> BoolArray:
        count, places = len(self.alive[variable]), self._at[variable]
        around = sorted({name for place in places for name in self._names[place]} - {variable})
        if count * math.prod(len(self.alive[name]) for name in around) > _JOINED:
            return np.ones(count, bool)
        total: FloatArray = np.zeros([count] + [1] * len(around))
        for place in sorted(places, key=lambda each: self._tables[each].size):
            names = self._names[place]
            axes = [names.index(name) for name in (variable, *around) if name in names]
            lengths = [count, *(len(self.alive[name]) if name in names else 1 for name in around)]
            total = total + self._tables[place].transpose(axes).reshape(lengths)
        good = np.zeros(count, bool)
        good[np.unique(total.argmin(axis=0))] = True
        return good

    def _diffuse(self) -> float:
        bound = self.bound
        for turn in range(_ROUNDS):
            order = range(len(self.alive))
            for variable in order if turn % 2 == 0 else reversed(order):
                self._even(variable)
            before, bound = bound, self.bound
            if not bound - before > _LITTLE * abs(bound):
                break
        return bound

    def _even(self, variable: int) -> None:
        places = self._at[variable]
        if len(places) < 2:
            return
        least = [self._least(place, variable) for place in places]
        mean = sum(least[1:], least[0]) / len(least)  # infinite where any table says that the state is impossible
        for place, own in zip(places, least):
            self._add(place, variable, np.where(np.isinf(mean), np.inf, mean - np.where(np.isinf(own), 0.0, own)))

    def _least(self, place: int, variable: int) -> FloatArray:
        names, table = self._names[place], self._tables[place]
        others = tuple(axis for axis, name in enumerate(names) if name != variable)
        return np.asarray(table.min(axis=others) if others else table)

    def _add(self, place: int, variable: int, costs: FloatArray) -> None:
        self._tables[place] += costs.reshape([-1 if name == variable else 1 for name in self._names[place]])

    def _keep(self, good: Sequence[BoolArray]) -> None:
        self.alive = [states[mask] for states, mask in zip(self.alive, good)]
        for place, names in enumerate(self._names):
            if not all(good[name].all() for name in names):
                self._tables[place] = self._tables[place][np.ix_(*(np.flatnonzero(good[name]) for name in names))]


def core(diffusion: Diffusion, keep: Collection[int], largest: Callable[[Sequence[int]], int], limit: int) -> Core:
    """Leave out states, fewer and fewer of the better ones, until `largest`, the entries of the largest table by
    numbers of states, is at most `limit`, or little is left."""
    part = WIDE
    while part > _LEAST and diffusion.cut(part):
        diffusion.thin(keep)
        if largest([len(states) for states in diffusion.alive]) <= limit:
            break
        part /= 2.0
    return diffusion.core
