"""Jobs: run on all cores, kept one by one, so that whatever ends a run, the next one goes on from there.

A job is a function of JSON-ready arguments. What it returns is kept under the hash of the arguments, of the graph and
the cluster that they name, of the assumption profiles and of the version. Results do not depend on how many jobs run at
a time, nor on their order.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

from rooflang import __version__
from rooflang.assumptions import PROFILES
from rooflang.errors import RooflangError
from rooflang.report.reproduction.setting import cluster_fingerprint, graph_fingerprint
from rooflang.report.reproduction.store import Kept, Store
from rooflang.search.inputs import digest
from rooflang.search.progress import Progress

Json = dict[str, Any]

#: Fewer jobs than this are not worth the start of other processes.
_WORTH_A_POOL = 3

#: Jobs after which a worker is replaced: what the caches of a process hold goes with it.
_JOBS_OF_A_WORKER = 100

_TICK_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A call of `work`, a function of a module, with the arguments `asked`; among them may be those that name a graph
    (`model`, `stage`, `context`, `assumptions`) and a cluster (`hardware`, `gpus`). `name` is unique, and the name of
    the file that keeps the result. `weight` says roughly how long it takes, beside other jobs."""

    name: str
    work: Callable[..., Json]
    asked: Mapping[str, Any]
    weight: float = 1.0

    @property
    def key(self) -> str:
        """The hash of all that the result depends on."""
        asked = dict(self.asked)
        made: Json = {}
        if "model" in asked:
            names = ("model", "stage", "context", "assumptions")
            made["graph"] = graph_fingerprint(*(asked[name] for name in names))
        if "hardware" in asked:
            made["cluster"] = cluster_fingerprint(asked["hardware"], asked["gpus"])
        made["profiles"] = {name: asdict(profile) for name, profile in PROFILES.items()}
        work = f"{self.work.__module__}.{self.work.__qualname__}"
        return digest({"work": work, "asked": asked, "made": made, "version": __version__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Results by the name of their job, and the errors of those that have none. `kept` counts what was there before,
    `took_s` is the processor time of each, whenever and in whichever process it ran."""

    results: Mapping[str, Json]
    errors: Mapping[str, str] = field(default_factory=dict)
    kept: int = 0
    took_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def cpu_s(self) -> float:
        """Processor time of all."""
        return sum(self.took_s.values())

    def __getitem__(self, name: str) -> Json:
        return self.results[name]


def run_jobs(jobs: Sequence[Job], store: Store, progress: Progress, *, workers: int | None = None) -> Ran:
    """Run the jobs that the store does not have, those of most weight first.

    Ctrl-C lets the jobs that run come to their end and keeps them; another one gives them up. It is raised again as
    `KeyboardInterrupt`. What a job raises of `RooflangError` is noted, and the others go on.
    """
    results: dict[str, Json] = {}
    todo: list[tuple[Job, str]] = []
    took_s: dict[str, float] = {}
    for number, job in enumerate(jobs):
        progress.say(f"looking for what is there: {number} of {len(jobs)}")
        key = job.key
        known = store.get(job.name, key)
        if known is None:
            todo.append((job, key))
        else:
            results[job.name] = known.data
            took_s[job.name] = known.cpu_s
    kept, errors = len(results), {}
    todo.sort(key=lambda each: -each[0].weight)
    count = min(workers or os.cpu_count() or 1, len(todo))
    run = _inline if count < 2 or len(todo) < _WORTH_A_POOL else _in_processes
    meter = _Meter(todo, progress)
    for job, key, data, error, cpu_s in run(todo, count, meter):
        took_s[job.name] = cpu_s
        if data is None:
            errors[job.name] = error
        else:
            store.put(job.name, key, Kept(data=data, cpu_s=cpu_s))
            results[job.name] = data
    return Ran(results=results, errors=errors, kept=kept, took_s=took_s)


_Outcome = tuple[Job, str, Json | None, str, float]


class _Meter:
    """Says how far the jobs are and how long the others will take, if they take as long for their weight."""

    def __init__(self, todo: Iterable[tuple[Job, str]], progress: Progress) -> None:
        self.weights = {job.name: job.weight for job, _ in todo}
        self.total = sum(self.weights.values())
        self.done_weight, self.done = 0.0, 0
        self.started_s, self.progress = time.monotonic(), progress

    def finished(self, job: Job) -> None:
        self.done += 1
        self.done_weight += job.weight

    def say(self, what: str) -> None:
        left = ""
        if self.done_weight:
            left_s = (time.monotonic() - self.started_s) * (self.total / self.done_weight - 1.0)
            left = f", about {left_s / 60:.0f} min left" if left_s >= 90 else f", about {left_s:.0f} s left"
        self.progress.say(f"{self.done} of {len(self.weights)} jobs{left}: {what}")


def _call(work: Callable[..., Json], asked: Mapping[str, Any]) -> tuple[Json | None, str, float]:
    """The result or the error, and the processor time that it took."""
    started_s = time.process_time()
    try:
        data, error = work(**asked), ""
    except RooflangError as problem:
        data, error = None, str(problem)
    return data, error, time.process_time() - started_s


def _inline(todo: Sequence[tuple[Job, str]], count: int, meter: _Meter) -> Iterator[_Outcome]:
    for job, key in todo:
        meter.say(job.name)
        data, error, took_s = _call(job.work, job.asked)
        meter.finished(job)
        yield job, key, data, error, took_s


def _in_processes(todo: Sequence[tuple[Job, str]], count: int, meter: _Meter) -> Iterator[_Outcome]:
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_leave_interrupts,
        max_tasks_per_child=_JOBS_OF_A_WORKER,
    )
    waiting = list(reversed(todo))
    running: dict[Future[tuple[Json | None, str, float]], tuple[Job, str]] = {}
    with _patient() as interrupted:
        try:
            while running or (waiting and not interrupted()):
                while waiting and not interrupted() and len(running) < count:
                    job, key = waiting.pop()
                    running[pool.submit(_call, job.work, job.asked)] = (job, key)
                finished, _ = wait(running, timeout=_TICK_S, return_when=FIRST_COMPLETED)
                for future in finished:
                    job, key = running.pop(future)
                    meter.finished(job)
                    yield job, key, *future.result()
                names = ", ".join(job.name for job, _ in running.values())
                meter.say(f"stopping, once these are kept: {names}" if interrupted() else names)
        finally:
            if running:  # the second Ctrl-C, or a bug in a job: nobody waits for the others
                for child in set(multiprocessing.active_children()) - others:
                    child.terminate()
            pool.shutdown(wait=not running, cancel_futures=True)
    if interrupted():
        raise KeyboardInterrupt


@contextmanager
def _patient() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C is only noted, for the function that is given; the second one is raised. Outside of the main
    thread, where Python hands out no signals, nothing changes."""
    noted = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    if threading.current_thread() is not threading.main_thread():
        yield noted.is_set
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _leave_interrupts() -> None:
    """Ctrl-C goes to every process of a terminal; the one that runs the jobs decides what becomes of them. One thread
    a process: there are as many processes as cores."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
