"""Limits of time and memory, as extractions see them.

Whatever takes longer than a moment asks between its steps. What it has by then stands: a plan is a plan, and a lower
bound is one, whatever else might have been tried.
"""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """Says whether the work has to end: the progress of a search is one."""

    @property
    def expired(self) -> bool:
        """Was a limit reached?"""

    @property
    def remaining_s(self) -> float:
        """Seconds until the time is up; may be infinite, never negative."""


class _Endless:
    expired = False
    remaining_s = float("inf")


#: No limits.
ENDLESS: Watch = _Endless()
