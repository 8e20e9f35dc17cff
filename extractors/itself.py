"""Records as keys of what is worked out once, where to compare them would take longer than the work."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Itself(Generic[T]):
    """A record as a key that equals only itself."""

    __slots__ = ("record",)

    def __init__(self, record: T) -> None:
        self.record = record

    def __hash__(self) -> int:
        return id(self.record)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self.record is other.record
