"""Which values every plan of a block has to make."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

#: A value, by number or by name.
T = TypeVar("T", int, str)


def needed(
    made: Iterable[T], given: Collection[T], exits: Collection[T], kernels: Iterable[tuple[T, Collection[T]]]
) -> frozenset[T]:
    """Of the values `made` those without which the `exits` cannot be reached from what is `given`. A kernel is what it
    makes and what it reads."""
    known = [(value, frozenset(reads)) for value, reads in kernels]
    return frozenset(value for value in made if not _makeable(given, known, value).issuperset(exits))


def _makeable(given: Collection[T], kernels: Iterable[tuple[T, frozenset[T]]], without: T) -> set[T]:
    found, size = set(given), -1
    while len(found) != size:
        size = len(found)
        found.update(value for value, reads in kernels if value != without and found.issuperset(reads))
    return found
