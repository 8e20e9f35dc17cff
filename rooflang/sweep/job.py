"""One search and its goals: what a worker gets, and what it gives back. Both travel between machines."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rooflang.assumptions import Assumptions
from rooflang.errors import RooflangError
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.search.goal import Goal
from rooflang.search.method import Method, Searched
from rooflang.search.outcome import outcome
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress

#: The outcome of a case that has a result; others have the code of the error that is its answer.
DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One configuration: its `key`, what was `asked` in words and numbers, and its goal."""

    key: str
    asked: Mapping[str, Any]
    goal: Goal


@dataclass(frozen=True, kw_only=True)
class Job:
    """Cases that differ in their goals only. `clusters` are all that are searched, the largest last; several of them
    where `max_gpus` is given. Models and clusters are records, so that no worker has to find a file."""

    model: Model | Graph
    clusters: tuple[Cluster, ...]
    max_gpus: int | None
    stage: str
    context: int
    assumptions: Assumptions
    method: Method
    limit_s: float
    limit_bytes: float
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A finished case, as it is stored. `result` is JSON of schema `rooflang.result/1` without its time, empty where
    the outcome is an error, which is then told in `error`."""

    key: str
    asked: str
    outcome: str
    error: str
    result: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of a job of so many `cases`: a row for each, or the traceback of a bug."""

    cases: int
    rows: tuple[Row, ...] = ()
    crash: str = ""


def run_job(job: Job, progress: Progress | None = None) -> Done:
    """Search once, and answer every case. What a case cannot have (memory, a constraint, a name) is its answer;
    anything else is a bug, which does not end a sweep. Ctrl-C goes through."""
    try:
        rows = _rows(job, progress or Progress(sink=_silent))
    except Exception:
        return Done(cases=len(job.cases), crash=traceback.format_exc())
    return Done(cases=len(job.cases), rows=rows)


def _rows(job: Job, progress: Progress) -> tuple[Row, ...]:
    begin = time.perf_counter()
    try:
        problem = Problem.of(
            job.model,
            hardware=job.clusters[-1],
            stage=job.stage,
            context=job.context,
            assumptions=job.assumptions,
        )
        problems = [replace(problem, cluster=cluster) for cluster in job.clusters[:-1]] + [problem]
        watch = progress.within(limit_s=job.limit_s, limit_bytes=job.limit_bytes)
        searched = Searched.all(job.method, problems, watch)
    except RooflangError as error:
        return tuple(_failed(case, error, time.perf_counter() - begin) for case in job.cases)
    shared_s = (time.perf_counter() - begin) / len(job.cases)
    return tuple(_answered(job, case, problem, searched, watch, shared_s) for case in job.cases)


def _answered(job: Job, case: Case, problem: Problem, searched: Searched, watch: Progress, shared_s: float) -> Row:
    begin = time.perf_counter()
    try:
        case.goal.check_stage(problem.stage)
        found = outcome(case.goal, job.method, problem, searched, watch, max_gpus=job.max_gpus)
    except RooflangError as error:
        return _failed(case, error, shared_s + time.perf_counter() - begin)
    if found.stopped_by == "interrupted":  # a part of an answer is none
        raise KeyboardInterrupt
    told = found.to_json()
    del told["seconds"]
    return Row(
        key=case.key,
        asked=_text(case.asked),
        outcome=DONE,
        error="",
        result=_text(told),
        seconds=shared_s + time.perf_counter() - begin,
    )


def _failed(case: Case, error: RooflangError, seconds: float) -> Row:
    return Row(key=case.key, asked=_text(case.asked), outcome=error.code, error=str(error), result="", seconds=seconds)


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _silent(message: str) -> None:
    """Progress that nobody sees."""
