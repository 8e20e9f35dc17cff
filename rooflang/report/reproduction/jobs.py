"""Jobs: run on all cores, kept one by one, so that whatever ends a run, the next one goes on from there.

A job is a function of JSON-ready arguments. What it returns is kept under the hash of the arguments, of the graph and
the cluster that they name, of the assumption profiles and of the version. Results do not depend on how many jobs run at
a time, nor on their order.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, cast

from rooflang import __version__
from rooflang.assumptions import PROFILES
from rooflang.errors import RooflangError
from rooflang.report.reproduction.crew import Crew
from rooflang.report.reproduction.setting import cluster_fingerprint, graph_fingerprint
from rooflang.report.reproduction.store import Kept, Store
from rooflang.search.inputs import digest
from rooflang.search.progress import Progress

Json = dict[str, Any]

#: Fewer jobs than this are not worth the start of other processes.
_WORTH_A_POOL = 3


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
    `took_s` is the processor time of each, whenever and in whichever process it ran. `workers` counts the processes
    that ran what was not there."""

    results: Mapping[str, Json]
    errors: Mapping[str, str] = field(default_factory=dict)
    kept: int = 0
    took_s: Mapping[str, float] = field(default_factory=dict)
    workers: int = 1

    @property
    def cpu_s(self) -> float:
        """Processor time of all."""
        return sum(self.took_s.values())

    def __getitem__(self, name: str) -> Json:
        return self.results[name]


def run_jobs(jobs: Sequence[Job], store: Store, progress: Progress, *, workers: int | None = None) -> Ran:
    """Run the jobs that the store does not have, those of most weight first.

    Ctrl-C lets the jobs that run come to their end and keeps them; another one gives them up. It is raised again as
    `KeyboardInterrupt`. What a job raises is noted, and the others go on; so do they where the process of a job is
    killed, which is tried once more.
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
    count = count if len(todo) >= _WORTH_A_POOL else 1
    run = _inline if count < 2 else _in_processes
    meter = _Meter(todo, progress)
    for job, key, data, error, cpu_s in run(todo, count, meter):
        took_s[job.name] = cpu_s
        if data is None:
            errors[job.name] = error
        else:
            store.put(job.name, key, Kept(data=data, cpu_s=cpu_s))
            results[job.name] = data
    return Ran(results=results, errors=errors, kept=kept, took_s=took_s, workers=max(1, count))


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
    """The result as it reads back from its file, or the error, and the processor time that it took."""
    started_s = time.process_time()
    try:
        data, error = cast(Json, json.loads(json.dumps(work(**asked), allow_nan=False))), ""
    except RooflangError as problem:
        data, error = None, str(problem)
    except Exception as problem:  # a mistake of ours in one job is no reason to lose the others
        at = traceback.extract_tb(problem.__traceback__)[-1]
        data, error = None, f"{type(problem).__name__}: {problem} ({Path(at.filename).name}, line {at.lineno})"
    return data, error, time.process_time() - started_s


def _inline(todo: Sequence[tuple[Job, str]], count: int, meter: _Meter) -> Iterator[_Outcome]:
    for job, key in todo:
        meter.say(job.name)
        data, error, took_s = _call(job.work, job.asked)
        meter.finished(job)
        yield job, key, data, error, took_s


def _in_processes(todo: Sequence[tuple[Job, str]], count: int, meter: _Meter) -> Iterator[_Outcome]:
    crew: Crew[tuple[Job, str], tuple[Json | None, str, float]] = Crew(count, _call)
    waiting = list(reversed(todo))
    died: set[str] = set()
    with _patient() as interrupted, crew:
        while crew.running or (waiting and not interrupted()):
            while waiting and crew.free and not interrupted():
                one = waiting.pop()
                crew.start(one, one[0].work, one[0].asked)
            for (job, key), outcome in crew.finished():
                if outcome is None and job.name not in died:  # it may have been memory that another one needed, too
                    died.add(job.name)
                    waiting.insert(0, (job, key))
                    continue
                meter.finished(job)
                yield job, key, *(outcome or (None, "its process was killed; there may be too little memory", 0.0))
            names = ", ".join(job.name for job, _ in crew.running)
            meter.say(f"stopping, once these are kept: {names}" if interrupted() else names)
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
