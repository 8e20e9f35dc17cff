"""From a task's network and numbers to the arrays that the solver takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.extractors.layouts import FloatArray, IntArray
from rooflang.extractors.network import Network
from rooflang.extractors.numbers import Numbers
from rooflang.extractors.solver import Programme
from rooflang.extractors.task import Objective

#: Inside a programme the objective is about this large: the solver's absolute tolerances (10⁻⁷) are then far below
#: what counts.
SCALE = 1e3

#: Weight of C + N beside T in `max`: of plans with one T the one that also does best without overlap.
TIE = 1e-4

#: Relative margin by which the solver's tolerances could make a bound too large.
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sum:
    """values·x[columns] over the network's columns, and some levels times their values."""

    columns: IntArray
    values: FloatArray
    levels: Sequence[tuple[Level, float]] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """A further column, from 0 to 1, that is at least each of some sums. What many rows have in common is said once
    so: rows that repeated it would be dense, which costs the solver most of its time."""

    sums: tuple[Sum, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """A further row: a sum that is at most `high`."""

    sum: Sum
    high: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Assembled:
    """A programme; column i of the network is column `place[i]` of it, -1 where it was left out. After those come
    levels, and the objective T. `unit_s` are seconds per unit of its objective."""

    programme: Programme
    place: IntArray
    unit_s: float
    objective: Objective

    def bound_s(self, bound: float) -> float:
        """A lower bound on the objective in seconds, from one on the programme's.

        In `max` the programme minimises T + ε·(C + N), and C + N ≤ 2·T: T ≥ bound / (1 + 2·ε).
        """
        weight = 1.0 + 2.0 * TIE if self.objective == "max" else 1.0
        return max(0.0, bound) * self.unit_s / weight * (1.0 - TOLERANCE)


def assemble(
    net: Network, found: Numbers, objective: Objective, *, about_s: float, rows: Sequence[Row] = ()
) -> Assembled:
    """The programme of a task whose objective is about `about_s` seconds, with further rows."""
    unit_s, levels = about_s / SCALE, _levels(row.sum for row in rows)
    place = np.where(found.usable, np.cumsum(found.usable) - 1, -1)
    count = int(found.usable.sum())
    further = ((0, 0), (0, len(levels)))
    local, exposed = (np.pad(table[:, found.usable] / unit_s, further) for table in (found.local_s, found.exposed_s))
    blocks = [_network_rows(net, found, place)]
    both = local + exposed
    if objective == "sum" and len(both) == 1:
        cost = np.append(both[0], 0.0)
    else:
        limits = [local, exposed] if objective == "max" else [both]
        blocks.append(_time_rows(np.concatenate(limits)))
        cost = np.append((TIE / len(both) if objective == "max" else 0.0) * both.sum(axis=0), 1.0)
    blocks.append(_further_rows(rows, place, {each: count + number for number, each in enumerate(levels)}))
    row, column, value, low, high = (np.concatenate(parts) for parts in zip(*_stacked(blocks)))
    programme = Programme(
        cost=cost,
        upper=np.append(np.ones(count + len(levels)), np.inf),
        integral=np.append(np.flatnonzero(found.usable) < net.integral, np.zeros(len(levels) + 1, bool)),
        low=low,
        high=high,
        start=np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(low)))]),
        column=column,
        value=value,
    )
    return Assembled(programme=programme, place=place, unit_s=unit_s, objective=objective)


#: (row numbers from 0, columns, values, lower bounds, upper bounds), entries sorted by row.
_Block = tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]


def _stacked(blocks: Sequence[_Block]) -> list[_Block]:
    out: list[_Block] = []
    at = 0
    for row, column, value, low, high in blocks:
        out.append((row + at, column, value, low, high))
        at += len(high)
    return out


def _network_rows(net: Network, found: Numbers, place: IntArray) -> _Block:
    """Rows of the network that have usable columns; the others say 0 ≤ 0."""
    kept = found.usable[net.col]
    row = net.row[kept]
    full = np.bincount(row, minlength=len(net.low)) > 0
    number = np.cumsum(full) - 1
    return number[row], place[net.col[kept]], net.sign[kept], net.low[full], net.high[full]


def _time_rows(limits: FloatArray) -> _Block:
    """One row for each of `limits` (rows, columns): it is at most T, the last column."""
    rows = len(limits)
    entries = np.concatenate([limits, np.full((rows, 1), -1.0)], axis=1)
    row, column = np.nonzero(entries)
    return row, column, entries[row, column], np.full(rows, -np.inf), np.zeros(rows)


def _levels(sums: Iterable[Sum]) -> list[Level]:
    """All levels that sums have, directly or by another level."""
    found: dict[Level, None] = {}
    waiting = [level for each in sums for level, _ in each.levels]
    while waiting:
        level = waiting.pop()
        if level not in found:
            found[level] = None
            waiting += [other for each in level.sums for other, _ in each.levels]
    return list(found)


def _further_rows(rows: Sequence[Row], place: IntArray, levels: Mapping[Level, int]) -> _Block:
    """The rows, and what levels are at least."""
    column: list[IntArray] = []
    value: list[FloatArray] = []
    for each, own in [(row.sum, -1) for row in rows] + [(s, at) for level, at in levels.items() for s in level.sums]:
        kept = place[each.columns] >= 0
        more = {levels[level]: size for level, size in each.levels} | ({own: -1.0} if own >= 0 else {})
        column.append(np.concatenate([place[each.columns][kept], np.array(list(more), np.int64)]))
        value.append(np.concatenate([each.values[kept], np.array(list(more.values()), np.float64)]))
    high = np.zeros(len(column))
    high[: len(rows)] = [row.high for row in rows]
    return (
        np.repeat(np.arange(len(column)), [len(each) for each in column]),
        np.concatenate([*column, np.zeros(0, np.int64)]),
        np.concatenate([*value, np.zeros(0)]),
        np.full(len(column), -np.inf),
        high,
    )
