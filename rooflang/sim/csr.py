"""Ragged lists in CSR form and exact grouping of integers.

A ragged list is (`starts`, `items`): row r is `items[starts[r]:starts[r + 1]]`.

Grouping sorts and compares neighbours: `np.unique` is much slower on large integer arrays in numpy 2.4.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Item = TypeVar("Item", bound=np.generic)


def starts_of(counts: IntArray) -> IntArray:
    """Row starts, shape (rows + 1,), of a ragged list with `counts` items a row."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def owners_of(starts: IntArray) -> IntArray:
    """The row of every item: the inverse of `starts_of`."""
    return np.arange(len(starts) - 1, dtype=np.int64).repeat(np.diff(starts))


def group_by(owner: IntArray, item: npt.NDArray[Item], rows: int) -> tuple[IntArray, npt.NDArray[Item]]:
    """CSR of the pairs (owner, item); the items of a row keep the order in which they were given."""
    order = np.argsort(owner, kind="stable")
    return starts_of(np.bincount(owner, minlength=rows).astype(np.int64)), item[order]


def transpose(starts: IntArray, items: IntArray, rows: int) -> tuple[IntArray, IntArray]:
    """The same pairs the other way round: for each of `rows` items, the rows that list it."""
    return group_by(items, owners_of(starts), rows)


def items_of_rows(starts: IntArray, rows: IntArray) -> IntArray:
    """Positions, in the item array, of all items of `rows`, row after row."""
    counts = starts[rows + 1] - starts[rows]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    positions: IntArray = np.arange(total, dtype=np.int64) + np.repeat(starts[rows] - (ends - counts), counts)
    return positions


def first_of_runs(ordered: npt.NDArray[np.generic]) -> BoolArray:
    """True where a sorted array starts a run of equal values."""
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def distinct_pairs(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct pairs (first, second), sorted, and how often each occurs. Values are not negative."""
    width = int(second.max(initial=0)) + 1
    packed = np.sort(first * width + second)
    kept = np.flatnonzero(first_of_runs(packed))
    counts = np.diff(np.append(kept, len(packed)))
    return packed[kept] // width, packed[kept] % width, counts


def class_ids(values: npt.NDArray[np.generic]) -> IntArray:
    """Number equal values alike: dense ids from 0, in order of first occurrence."""
    order = np.argsort(values, kind="stable")
    first = first_of_runs(values[order])
    ids = np.empty(len(values), np.int64)
    ids[order] = np.cumsum(first) - 1
    by_first_member = np.argsort(order[first], kind="stable")
    rank = np.empty(len(by_first_member), np.int64)
    rank[by_first_member] = np.arange(len(by_first_member))
    return rank[ids]


def pair_ids(first: IntArray, second: IntArray) -> IntArray:
    """Dense ids of the pairs (first, second), exactly: two pairs are equal if and only if their ids are."""
    if not len(first):
        return np.zeros(0, np.int64)
    a, b = class_ids(first), class_ids(second)
    return class_ids(a * (int(b.max()) + 1) + b)


def representatives(class_of: IntArray) -> IntArray:
    """The smallest member of every class of a dense numbering, shape (classes,)."""
    members = np.argsort(class_of, kind="stable")
    return members[first_of_runs(class_of[members])].astype(np.int64)
