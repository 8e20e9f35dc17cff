"""Where examples come from: a `Source` answers every question of a generator with a number below a bound.

An example is the list of these answers, so that any example can be played again, and made smaller by making the
answers smaller: generators ask such that 0 is the simplest answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import numpy as np

from rooflang.ir.exact import to_exact
from rooflang.ir.reference.base import Array

_Item = TypeVar("_Item")


class Unsuitable(Exception):
    """What was drawn is no example of the claim: it says nothing about it, and does not count."""


class Source(ABC):
    """Answers. `wide` asks generators for extents and ranks of at least 2, where rules have something to get wrong."""

    wide: bool = False

    @abstractmethod
    def below(self, bound: int) -> int:
        """A number from 0 to bound − 1; the bound is at least 1."""

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def choice(self, items: Sequence[_Item]) -> _Item:
        return items[self.below(len(items))]

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.below(one_in) == one_in - 1

    def suits(self, condition: bool) -> None:
        """Give up an example that is none. Raises `Unsuitable` unless the condition holds."""
        if not condition:
            raise Unsuitable

    def extent(self, most: int = 5) -> int:
        """An extent of a dim: 1 or more, or 2 or more if `wide`."""
        return self.integer(2 if self.wide else 1, most)

    def ranks(self, most: int = 4) -> int:
        """Coordinates of a mesh axis."""
        return self.integer(2 if self.wide else 1, most)

    def generator(self) -> np.random.Generator:
        """A generator for what is too large to be asked for number by number."""
        return np.random.default_rng(self.below(1 << 16))

    def numbers(self, shape: Sequence[int], *, exact: bool = True) -> Array:
        """Integers from −3 to 3, few enough that ties are common; exact numbers, or floats."""
        drawn = self.generator().integers(-3, 4, tuple(shape)).astype(np.float64)
        return to_exact(drawn) if exact else drawn


class RandomSource(Source):
    """Random answers from a seed, written down in `answers`."""

    def __init__(self, seed: int, *, wide: bool = False) -> None:
        self.wide = wide
        self.answers: list[int] = []
        self._random = Random(seed)

    def below(self, bound: int) -> int:
        self.answers.append(self._random.randrange(bound))
        return self.answers[-1]


class Replay(Source):
    """Given answers, cut to the bounds that they meet, then zeros."""

    def __init__(self, answers: Sequence[int], *, wide: bool = False) -> None:
        self.wide = wide
        self.answers = list(answers)
        self.asked = 0

    def below(self, bound: int) -> int:
        given = self.answers[self.asked] if self.asked < len(self.answers) else 0
        self.asked += 1
        return min(given, bound - 1)
