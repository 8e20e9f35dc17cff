"""Progress of a search: a line that is replaced, on terminals only, once the work has taken two seconds; and the limits
that end it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rooflang.errors import ValueRangeError

#: Work shorter than this shows nothing.
_QUIET_S = 2.0
_EVERY_S = 0.1

#: What a share is of a time that is up, so that it is the share's owner who says that there was none.
_LEAST_S = 1e-9


class Progress:
    """Says what a search is doing and knows its limits: seconds, and bytes of memory of this process.

    `sink` receives each message (default: a self-replacing line on stderr, if that is a terminal), `topic` before it.
    """

    def __init__(
        self,
        *,
        sink: Callable[[str], None] | None = None,
        limit_s: float = float("inf"),
        limit_bytes: float = float("inf"),
    ) -> None:
        self.started_s = time.monotonic()
        self.topic = ""
        self.limit_s = limit_s
        self.limit_bytes = limit_bytes
        self._stop = ""
        self._noted = ""
        self._sink = sink or (_replace_line if sys.stderr.isatty() else None)
        self._last_s = self.started_s

    def within(self, *, limit_s: float = float("inf"), limit_bytes: float = float("inf")) -> Progress:
        """One that begins now, speaks where this one does, and has the narrower of the limits given and of those that
        are left of this one's. Raises `ValueRangeError` for a limit that is not above 0."""
        for name, value in (("--time-limit", limit_s), ("--memory-limit", limit_bytes)):
            if not isinstance(value, (int, float)) or not value > 0:  # true for NaN, too
                raise ValueRangeError(f"{value!r} is not possible", where=name, expected="a number above 0")
        inner = Progress(
            sink=self._sink,
            limit_s=min(limit_s, self.remaining_s),
            limit_bytes=min(limit_bytes, self.limit_bytes),
        )
        inner._sink = self._sink
        return inner

    @contextmanager
    def share(self, count: int) -> Iterator[Progress]:
        """One that has as much of the time that is left as each of so many; what stops it is noted here."""
        turn = self.within(limit_s=max(self.remaining_s / count, _LEAST_S))
        try:
            yield turn
        finally:
            if turn.stopped_by != "complete":
                self.note(turn.stopped_by)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    @property
    def remaining_s(self) -> float:
        """Seconds until the time limit; may be infinite, never negative."""
        return max(0.0, self.limit_s - self.elapsed_s)

    @property
    def expired(self) -> bool:
        """Has a limit been reached? Once it has, it stays so."""
        if not self._stop and self.elapsed_s >= self.limit_s:
            self._stop = "time limit"
        if not self._stop and self.limit_bytes < float("inf") and _resident_bytes() >= self.limit_bytes:
            self._stop = "memory limit"
        return bool(self._stop)

    def note(self, limit: str) -> None:
        """A limit cut a part of the work short, and the rest goes on."""
        self._noted = limit

    @property
    def stopped_by(self) -> str:
        """`complete`, or the limit that ended the work or a part of it."""
        return ("" if not self.expired else self._stop) or self._noted or "complete"

    def say(self, message: str) -> None:
        """Show what is being done, at most ten times a second."""
        now = time.monotonic()
        if self._sink and now - self.started_s > _QUIET_S and now - self._last_s > _EVERY_S:
            self._last_s = now
            self._sink(f"{self.elapsed_s:5.1f} s  {self.topic}{message}")

    def done(self) -> None:
        """Clear the line."""
        if self._sink is _replace_line:
            _replace_line("")


def _resident_bytes() -> int:
    """Memory that this process occupies; where the system does not tell, the most that it has occupied."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _replace_line(message: str) -> None:
    columns = shutil.get_terminal_size().columns  # a line that wraps would not be replaced
    sys.stderr.write("\r\x1b[2K" + message[: columns - 1])
    sys.stderr.flush()


def silent(message: str) -> None:
    """A sink for progress that nobody is to see."""
