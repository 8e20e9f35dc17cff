"""The parts of a search on several cores: each process keeps the parts that it opened, priced and with their plans.

Which process works on a part is settled beforehand, and no result depends on it: a part is told what is known from all
others once all of them have been looked at. With one job everything happens in this process.

Processes are started as `python -c …` and talk through pipes: they import nothing of the program that searches, so
that a script needs no guard, and they live exactly as long as the search.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from rooflang.search.looks import Looked
from rooflang.search.part import Best, Part, Way
from rooflang.search.progress import Progress

#: Meshes times kinds of block from which on it pays to start other processes, which takes about a second.
_WORTHWHILE = 24


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A part that has been looked at, as `Part` says: how many `meshes`, on how many of them each batch size is
    `possible`, and what a step takes at least."""

    stages: int
    looked: list[Looked]
    meshes: int
    possible: tuple[int, ...]
    bounds_s: tuple[float, ...]
    cut_short: bool
    whole: bool
    interrupted: bool


#: When the time is up, by the clock that all processes share, and the memory that each of them may occupy.
_Limits = tuple[float, float]

#: The parts that this process has opened, by the number of their stages.
_PARTS: dict[int, Part] = {}


def _open(way: Way, stages: int, limits: _Limits, every: bool) -> Opened:
    part = _PARTS[stages] = Part.of(way, stages, _left(limits))
    return Opened(
        stages=stages,
        looked=part.all_looked() if every else part.looked(),
        meshes=len(part.found),
        possible=part.possible,
        bounds_s=tuple(part.bounds_s.tolist()),
        cut_short=part.cut_short,
        whole=part.whole,
        interrupted=part.interrupted,
    )


def _best(stages: int, at: int, limit_s: float, limits: _Limits, reserve_bytes: float) -> Best:
    return _PARTS[stages].best(at, limit_s, _left(limits), reserve_bytes)


def _left(limits: _Limits) -> Progress:
    until_s, limit_bytes = limits
    return Progress(limit_s=max(0.0, until_s - time.time()), limit_bytes=limit_bytes)


def _limits(progress: Progress) -> _Limits:
    return time.time() + progress.remaining_s, progress.limit_bytes


def serve() -> None:
    """Answer calls from standard input on standard output until it ends: what another process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the search that started it decides when it ends
    calls, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            work, arguments = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = (True, work(*arguments))
        except Exception as error:
            answer = (False, error)
        pickle.dump(answer, answers)
        answers.flush()


@dataclass(frozen=True, slots=True)
class _Here:
    """A call that this process answers once its result is asked for."""

    work: Callable[..., Any]
    arguments: tuple[Any, ...]

    def done(self) -> bool:
        return False

    def result(self) -> Any:
        return self.work(*self.arguments)


class _Process:
    """Another process that answers one call after the other."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", "from rooflang.search.workers import serve; serve()"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._calls = ThreadPoolExecutor(1)

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._calls.submit(self._call, work, arguments)

    def _call(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        calls, answers = self._process.stdin, self._process.stdout
        if calls is None or answers is None:
            raise RuntimeError("the process has no pipes")
        pickle.dump((work, arguments), calls)
        calls.flush()
        good, value = pickle.load(answers)
        if not good:
            raise value
        return value

    def end(self) -> None:
        self._process.kill()
        self._calls.shutdown(wait=True, cancel_futures=True)
        self._process.communicate()


@dataclass(eq=False)
class Workers:
    """The processes of a search; `jobs` of them (0: as many as there are cores, where it pays)."""

    way: Way
    jobs: int = 0
    _processes: list[_Process] = field(default_factory=list)
    _home: dict[int, _Process | None] = field(default_factory=dict)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.end()
        _PARTS.clear()

    def open(self, degrees: Sequence[int], progress: Progress, *, every: bool = False) -> Iterator[Opened]:
        """Look at the parts of all numbers of stages, of all meshes if `every` one is asked for; in their order. At
        Ctrl-C those that are done by then come before it is raised."""
        self._place(degrees)
        waiting = [self._submit(stages, _open, self.way, stages, _limits(progress), every) for stages in degrees]
        for number, (stages, job) in enumerate(zip(degrees, waiting)):
            progress.say(f"pricing and looking at the meshes of {stages} pipeline stages")
            try:
                part = job.result()
            except KeyboardInterrupt:
                yield from (other.result() for other in waiting[number:] if other.done())
                raise
            yield part
            if part.interrupted:
                raise KeyboardInterrupt

    def best(
        self, stages: int, at: int, limit_s: float, progress: Progress, reserve_bytes: float = 0.0
    ) -> Callable[[], Best]:
        """Ask for the best plan for a batch size and a number of stages; it is there when the result is called."""
        return self._submit(stages, _best, stages, at, limit_s, _limits(progress), reserve_bytes).result

    def _submit(self, stages: int, work: Callable[..., Any], *arguments: Any) -> _Here | Future[Any]:
        process = self._home[stages]
        return _Here(work, arguments) if process is None else process.submit(work, *arguments)

    def _place(self, degrees: Sequence[int]) -> None:
        """Settle where each part is worked on: the largest ones first, each where there is least to do so far."""
        sizes = {stages: len(self.way.fixed.spaces(self.way.problem, stages)) for stages in degrees}
        jobs = min(self.jobs or self._usual(sum(sizes.values())), len(degrees))
        self._home = dict.fromkeys(degrees)
        if jobs < 2:
            return
        self._processes = [_Process() for _ in range(jobs)]
        load = [0] * jobs
        for stages in sorted(degrees, key=lambda each: (-sizes[each], each)):
            least = load.index(min(load))
            load[least] += sizes[stages]
            self._home[stages] = self._processes[least]

    def _usual(self, meshes: int) -> int:
        large = meshes * len(self.way.problem.blocks.kinds) >= _WORTHWHILE and len(self.way.batches) > 1
        return (os.cpu_count() or 1) if large else 1
