"""Not a test: begins a sweep again and again, kills it at random moments, and lets the last one finish.

`python killed.py SPEC STORES SEED`: each time that a sweep ends before it is killed, the next one has a new store in
the folder STORES. It is a process of its own, which forks after most imports, so that the moments lie in the sweep, and
before egglog has begun threads.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import rooflang.search.egraph  # noqa: F401
from rooflang.sweep import run_sweep

KILLS = 20


def begin(spec: Path, store: Path) -> int:
    """A sweep in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run_sweep(spec, store=store)
            code = 0
        finally:
            os._exit(code)
    return child


def wait(child: int, until_s: float) -> bool:
    """Whether it has ended by that time."""
    while time.monotonic() < until_s:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0, f"a sweep failed with status {status}"
            return True
        time.sleep(0.001)
    return False


def main(spec: Path, folder: Path, seed: int) -> None:
    moments = random.Random(seed)
    begun = time.monotonic()
    assert wait(begin(spec, folder / "timed.sqlite"), begun + 60.0)
    whole_s = time.monotonic() - begun
    kills, number = 0, 0
    while kills < KILLS:
        store = folder / f"{number}.sqlite"
        child = begin(spec, store)
        if wait(child, time.monotonic() + moments.uniform(0.0, whole_s / 2)):
            number += 1
            continue
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
    assert wait(begin(spec, folder / f"{number}.sqlite"), time.monotonic() + 300.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
