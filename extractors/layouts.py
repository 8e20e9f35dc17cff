"""The layouts of one tensor and what it takes to get from one to another, for all batch sizes at once.

Single transfers are closed over paths: `seconds[i, j]` is the shortest network time from layout i to layout j. A local
slice takes none, so that 0 means "i holds all of j".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Transfer

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

#: A spec, and the memory in which what has it lies.
Place = tuple[Spec, str]

#: A path has to be shorter than another by more than rounding before it replaces it: ties keep the fewest steps.
_SHORTER = 1.0 - 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Closure:
    """Shortest paths between `n` layouts at `b` batch sizes.

    `seconds` has the shape (n, n, b) and is infinite where no path leads; `first` (n, n, b) is the next layout on the
    way, -1 where there is none.
    """

    seconds: FloatArray
    first: IntArray

    @classmethod
    def of(cls, count: int, batches: int, steps: Iterable[tuple[int, int, FloatArray]]) -> Closure:
        """Close single steps (from, to, seconds by batch size) by Floyd and Warshall's algorithm."""
        seconds = np.full((count, count, batches), np.inf)
        first = np.full((count, count, batches), -1, np.int64)
        for before, after, cost in steps:
            shorter = cost < seconds[before, after]
            seconds[before, after] = np.where(shorter, cost, seconds[before, after])
            first[before, after] = np.where(shorter, after, first[before, after])
        seconds[np.arange(count), np.arange(count)] = 0.0
        beaten, reaches = seconds * _SHORTER, np.isfinite(seconds).any(axis=2)
        for middle in range(count):
            starts = np.flatnonzero(reaches[:, middle])
            through = seconds[starts, middle, None] + seconds[None, middle]
            shorter = np.flatnonzero(through < (beaten[starts] if len(starts) < count else beaten))
            if len(shorter):  # few: that is faster than to copy under a mask
                row, end, at = np.unravel_index(shorter, through.shape)
                where = (starts[row], end, at)
                seconds[where] = through.reshape(-1)[shorter]
                beaten[where] = seconds[where] * _SHORTER
                first[where] = first[where[0], middle, at]
                reaches[where[:2]] = True
        return cls(seconds=seconds, first=first)

    @cached_property
    def holds(self) -> BoolArray:
        """Mask (n, n): does layout i hold all of layout j (a local slice of it, or itself)?"""
        return np.asarray((self.seconds == 0.0).any(axis=2))

    def stops(self, before: int, after: int, at: int) -> list[int]:
        """The layouts on the shortest path at batch size number `at`, both ends included."""
        out = [before]
        while out[-1] != after:
            out.append(int(self.first[out[-1], after, at]))
        return out


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """The layouts that a tensor can take: `specs` by number, and single `steps` by (from, to).

    What was written in place lies in the memory of its leaf: `tiers` by number where that may be another one than HBM,
    empty where all layouts are in HBM. No step leads from one memory to another.
    """

    specs: tuple[Spec, ...]
    steps: Mapping[tuple[int, int], Transfer]
    tiers: tuple[str, ...] = ()

    @cached_property
    def number(self) -> dict[Spec, int]:
        """Number of each spec, in HBM."""
        return {spec: index for (spec, tier), index in self.place.items() if tier == HBM}

    @cached_property
    def place(self) -> dict[Place, int]:
        """Number of each spec in each memory."""
        tiers = self.tiers or (HBM,) * len(self.specs)
        return {pair: index for index, pair in enumerate(zip(self.specs, tiers, strict=True))}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layouts:
    """The `places` that a tensor can take, and the closure of the steps between them."""

    places: Places
    closure: Closure

    @property
    def specs(self) -> tuple[Spec, ...]:
        return self.places.specs

    @property
    def number(self) -> Mapping[Spec, int]:
        """Number of each spec, in HBM."""
        return self.places.number

    def path(self, stops: Sequence[int], at: int) -> tuple[Transfer, ...]:
        """Transfers that visit the layouts `stops` in turn, by shortest paths at batch size number `at`."""
        out: list[Transfer] = []
        for before, after in pairwise(stops):
            visited = self.closure.stops(before, after, at)
            out += [self.places.steps[pair] for pair in pairwise(visited)]
        return tuple(out)
