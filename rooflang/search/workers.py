"""The parts of a search on several cores: each process keeps the parts that it opened, priced and with their plans.

Which process works on a part is settled beforehand, and no result depends on it: a part is told what is known from all
others once all of them have been looked at. With one job everything happens in this process.

Processes are started as `python -c …` and talk through pipes: they import nothing of the program that searches, so
that a script needs no guard, and they live exactly as long as the search.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from rooflang.search.looks import Looked
from rooflang.search.part import Best, Part, Way
from rooflang.search.progress import Progress, silent

#: Meshes times kinds of block from which on it pays to start other processes, which takes about a second.
_WORTHWHILE = 24

#: From so many batch sizes on, two parts take turns with those of the fewest stages, where most of the work is.
_MANY = 8

#: A part: its number of stages, and whether it takes the first or the second of two turns, if there are two.
_Share = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A part that has been looked at, and the batch sizes that it takes, by number. As `Part` says: how many `meshes`,
    on how many of them each batch size is `possible`, and what a step takes at least."""

    stages: int
    ats: range
    looked: list[Looked]
    meshes: int
    possible: tuple[int, ...]
    bounds_s: tuple[float, ...]
    cut_short: bool
    whole: bool
    interrupted: bool


#: When the time is up, by the clock that all processes share, and the memory that each of them may occupy.
_Limits = tuple[float, float]

#: The parts that this process has opened.
_PARTS: dict[_Share, Part] = {}


def _open(way: Way, share: _Share, ats: range, limits: _Limits, every: bool) -> Opened:
    part = _PARTS[share] = Part.of(way, share[0], _left(limits))
    return Opened(
        stages=share[0],
        ats=ats,
        looked=[one for one in (part.all_looked() if every else part.looked()) if one.at in ats],
        meshes=len(part.found),
        possible=part.possible,
        bounds_s=tuple(part.bounds_s.tolist()),
        cut_short=part.cut_short,
        whole=part.whole,
        interrupted=part.interrupted,
    )


def _best(share: _Share, at: int, limit_s: float, limits: _Limits, reserve_bytes: float) -> Best:
    return _PARTS[share].best(at, limit_s, _left(limits), reserve_bytes)


def _left(limits: _Limits) -> Progress:
    """The limits where a part works. It says nothing: the search that asked it speaks, unless it is to be quiet."""
    until_s, limit_bytes = limits
    return Progress(sink=silent, limit_s=max(0.0, until_s - time.time()), limit_bytes=limit_bytes)


def _limits(progress: Progress) -> _Limits:
    return time.time() + progress.remaining_s, progress.limit_bytes


def serve() -> None:
    """Answer calls from standard input on standard output until it ends: what another process runs. Ctrl-C is not for
    it: the search that started it decides when it ends."""
    calls, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            work, arguments = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = (True, work(*arguments))
            if work is _open:
                gc.freeze()  # a part stays: the collector of cycles need not walk it again and again
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
        deaf = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # first: Ctrl-C may come while it imports
        command = [sys.executable, "-c", f"{deaf}; from rooflang.search.workers import serve; serve()"]
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
    _home: dict[_Share, _Process | None] = field(default_factory=dict)

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
        waiting = [
            self._submit(share, _open, self.way, share, self._ats(share), _limits(progress), every)
            for share in self._home
        ]
        for number, (share, job) in enumerate(zip(self._home, waiting)):
            progress.say(f"pricing and looking at the meshes of {share[0]} pipeline stages")
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
        share = next(share for share in self._home if share[0] == stages and at in self._ats(share))
        return self._submit(share, _best, share, at, limit_s, _limits(progress), reserve_bytes).result

    def _submit(self, share: _Share, work: Callable[..., Any], *arguments: Any) -> _Here | Future[Any]:
        process = self._home[share]
        return _Here(work, arguments) if process is None else process.submit(work, *arguments)

    def _ats(self, share: _Share) -> range:
        """The numbers of the batch sizes that a part takes."""
        stages, turn = share
        return range(turn, len(self.way.batches), 2 if (stages, 1) in self._home else 1)

    def _place(self, degrees: Sequence[int]) -> None:
        """Settle what the parts are, and where each is worked on: the fewest stages and the largest parts first, each
        where there is least to do so far."""
        twice = [(min(degrees), 1)] if len(self.way.batches) >= _MANY else []
        shares: list[_Share] = sorted([*((stages, 0) for stages in degrees), *twice])
        meshes = {stages: len(self.way.fixed.spaces(self.way.problem, stages)) for stages in degrees}
        jobs = min(self.jobs or self._usual(sum(meshes.values())), len(shares))
        self._home = dict.fromkeys(shares)
        if jobs < 2:
            return
        self._processes = [_Process() for _ in range(jobs)]
        load = [0] * jobs
        for share in sorted(shares, key=lambda each: (each[0] > min(degrees), -meshes[each[0]], each)):
            least = load.index(min(load))
            load[least] += meshes[share[0]]
            self._home[share] = self._processes[least]

    def _usual(self, meshes: int) -> int:
        large = meshes * len(self.way.problem.blocks.kinds) >= _WORTHWHILE and len(self.way.batches) > 1
        return (os.cpu_count() or 1) if large else 1
