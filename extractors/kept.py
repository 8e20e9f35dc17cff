"""What was computed, as long as the tables that it keeps have room: what was not asked for lately makes room."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class HasEntries(Protocol):
    """Something with tables of so many `entries`, 8 bytes each."""

    @property
    def entries(self) -> int: ...


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=HasEntries)


class Kept(Generic[K, V]):
    """Values by key, with at most so many entries in all; the last one stays whatever it has."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[K, tuple[V, int]] = {}

    def get(self, key: K, compute: Callable[[], V]) -> V:
        """The value of a key, computed if it is not there."""
        found = self._values.pop(key, None)
        if found is not None:
            self._values[key] = found  # asked for last
            return found[0]
        return self.put(key, compute())

    def put(self, key: K, value: V) -> V:
        """Keep a value."""
        self._values[key] = value, value.entries
        while len(self._values) > 1 and sum(entries for _, entries in self._values.values()) > self._limit:
            del self._values[next(iter(self._values))]
        return value
