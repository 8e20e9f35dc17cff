"""Standard input that signals can end: a thread that waits for more of it cannot be interrupted."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_CHUNK_BYTES = 1 << 16
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within it, Ctrl-C and SIGTERM end what this process reads on its standard input, as its writer can. Raises
    `KeyboardInterrupt` after it where one did. For the main thread."""
    caught: list[int] = []
    source, (inner, outer) = os.dup(0), os.pipe()
    os.dup2(inner, 0)
    os.close(inner)
    sink = os.fdopen(outer, "wb", buffering=0)

    def pass_on() -> None:
        with suppress(OSError, ValueError):  # ended meanwhile
            while chunk := os.read(source, _CHUNK_BYTES):
                sink.write(chunk)
            sink.close()

    def end(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        sink.close()

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    threading.Thread(target=pass_on, daemon=True).start()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise KeyboardInterrupt
