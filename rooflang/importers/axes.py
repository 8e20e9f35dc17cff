"""Which axes of which tensors are the same dim: classes of axes, merged operator by operator, then named.

A tensor never has one dim twice, and neither has an operator two dims that it tells apart. A merge that would lead to
that is refused, and the caller reads the axis under another name instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Axis = int


class Axes:
    """Axes with their sizes and the names they would like to have."""

    def __init__(self) -> None:
        self._parent: list[Axis] = []
        self._size: list[int] = []
        self._hint: list[str] = []
        self._apart: list[set[int]] = []
        self._groups = 0

    def new(self, size: int, hint: str) -> Axis:
        """An axis that is like no other one yet."""
        self._parent.append(len(self._parent))
        self._size.append(size)
        self._hint.append(hint)
        self._apart.append(set())
        return len(self._parent) - 1

    def find(self, axis: Axis) -> Axis:
        """The axis that stands for all that are the same dim."""
        while self._parent[axis] != axis:
            self._parent[axis] = self._parent[self._parent[axis]]
            axis = self._parent[axis]
        return axis

    def size(self, axis: Axis) -> int:
        return self._size[axis]

    def keep_apart(self, axes: Iterable[Axis]) -> None:
        """These axes, those of one tensor or operator, are dims of their own for good."""
        self._groups += 1
        for axis in {self.find(each) for each in axes}:
            self._apart[axis].add(self._groups)

    def same(self, one: Axis, other: Axis) -> bool:
        """Make two axes one dim; false where they cannot be."""
        first, second = sorted((self.find(one), self.find(other)))
        if first == second:
            return True
        if self._size[first] != self._size[second] or self._apart[first] & self._apart[second]:
            return False
        self._parent[second] = first
        self._apart[first] |= self._apart[second]
        return True

    def names(self, used: Sequence[Axis]) -> dict[Axis, str]:
        """A name for the class of each axis: what its first axis would like, with a number where that is taken."""
        names: dict[Axis, str] = {}
        taken: set[str] = set()
        for axis in used:
            root = self.find(axis)
            if root not in names:
                wish = re.sub(r"[^a-z0-9_]+", "_", self._hint[root].lower()).strip("_") or "dim"
                name, number = wish, 2
                while name in taken:
                    name, number = f"{wish}_{number}", number + 1
                taken.add(name)
                names[root] = name
        return names
