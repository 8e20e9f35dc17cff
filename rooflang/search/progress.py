"""Progress of a search: a line that is replaced, on terminals only, once the work has taken two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

#: Work shorter than this shows nothing.
_QUIET_S = 2.0
_EVERY_S = 0.1


class Progress:
    """Says what a search is doing and knows its time limit.

    `sink` receives each message (default: a self-replacing line on stderr, if that is a terminal).
    """

    def __init__(self, *, sink: Callable[[str], None] | None = None, limit_s: float = float("inf")) -> None:
        self.started_s = time.monotonic()
        self.limit_s = limit_s
        self._sink = sink or (_replace_line if sys.stderr.isatty() else None)
        self._last_s = self.started_s

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    @property
    def remaining_s(self) -> float:
        """Seconds until the time limit; may be infinite, never negative."""
        return max(0.0, self.limit_s - self.elapsed_s)

    @property
    def expired(self) -> bool:
        return self.elapsed_s >= self.limit_s

    def say(self, message: str) -> None:
        """Show what is being done, at most ten times a second."""
        now = time.monotonic()
        if self._sink and now - self.started_s > _QUIET_S and now - self._last_s > _EVERY_S:
            self._last_s = now
            self._sink(f"{self.elapsed_s:5.1f} s  {message}")

    def done(self) -> None:
        """Clear the line."""
        if self._sink is _replace_line:
            _replace_line("")


def _replace_line(message: str) -> None:
    sys.stderr.write("\r\x1b[2K" + message[:160])
    sys.stderr.flush()
