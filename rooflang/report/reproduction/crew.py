"""Processes that each do one piece of work at a time. One that is killed takes no other with it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, TypeVar

from rooflang.sweep.backends import end_with_parent

#: Pieces of work after which a process is replaced: what its caches hold goes with it.
_REPLACED_AFTER = 100

_TICK_S = 0.5

#: Objects that a process makes before it looks for cycles among them.
_CYCLES_AFTER = 200_000

_Name = TypeVar("_Name")
_Answer = TypeVar("_Answer")


class _Process:
    """A process, started with its first work. `concurrent.futures` can replace processes, too, but may then go on with
    fewer of them (python/cpython#115634)."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
        self.left = _REPLACED_AFTER

    def submit(self, work: Callable[..., _Answer], *arguments: Any) -> Future[_Answer]:
        self.left -= 1
        return self._pool.submit(work, *arguments)

    def leave(self) -> None:
        """End once it has done what it does."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Crew(Generic[_Name, _Answer]):
    """So many processes, all of which run `call`. Used as a context, whose end ends what still runs."""

    def __init__(self, count: int, call: Callable[[Callable[..., Any], Mapping[str, Any]], _Answer]) -> None:
        self._call, self._count = call, count
        self._others = set(multiprocessing.active_children())
        self._idle: list[_Process] = []
        self._busy: dict[Future[_Answer], tuple[_Process, _Name]] = {}

    def __enter__(self) -> Crew[_Name, _Answer]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._busy:
            for child in set(multiprocessing.active_children()) - self._others:
                child.terminate()
        for process in [*self._idle, *(process for process, _ in self._busy.values())]:
            process.leave()

    @property
    def running(self) -> list[_Name]:
        """What runs, by the names that it was given."""
        return [name for _, name in self._busy.values()]

    @property
    def free(self) -> bool:
        """Is there a process that does nothing?"""
        return len(self._busy) < self._count

    def start(self, name: _Name, work: Callable[..., Any], asked: Mapping[str, Any]) -> None:
        """Let a process that is free do this."""
        process = self._idle.pop() if self._idle else _Process()
        with _one_thread():
            try:
                future = process.submit(self._call, work, asked)
            except BrokenExecutor:  # it was killed while it had nothing to do
                process.leave()
                process = _Process()
                future = process.submit(self._call, work, asked)
        self._busy[future] = (process, name)

    def finished(self) -> Iterator[tuple[_Name, _Answer | None]]:
        """What came to its end within half a second, with the answer; None if its process was killed."""
        done, _ = wait(self._busy, timeout=_TICK_S, return_when=FIRST_COMPLETED)
        for future in done:
            process, name = self._busy.pop(future)
            try:
                answer = future.result()
            except BrokenExecutor:
                process.leave()
                yield name, None
                continue
            if process.left > 0:
                self._idle.append(process)
            else:
                process.leave()
            yield name, answer


@contextmanager
def _one_thread() -> Iterator[None]:
    """Libraries of the processes that are started meanwhile have one thread each: there is a process for each core."""
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    os.environ.update(dict.fromkeys(before, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _begin() -> None:
    """Ctrl-C goes to every process of a terminal; the one that runs the jobs decides what becomes of them. Cycles are
    few, and looking for them often takes a tenth of the time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    gc.set_threshold(_CYCLES_AFTER)
