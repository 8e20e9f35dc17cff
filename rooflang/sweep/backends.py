"""Where jobs run: in this process, in several of this machine (joblib), or on a Dask or Ray cluster that is there.

Each backend takes jobs one by one as it has room for them, and gives back what became of them in any order.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args

from rooflang.errors import RooflangError, UnknownNameError, ValueRangeError
from rooflang.search.progress import Progress
from rooflang.sweep.job import Done, Job, run_job

Backend = Literal["local", "dask", "ray"]

#: Jobs that are sent to a cluster ahead, for each of its cores.
_AHEAD = 2

#: How often a worker looks whether the process that began the sweep is still there.
_WATCH_S = 1.0

_LIBRARIES = {"sweep": "joblib", "dask": "distributed", "ray": "ray"}

_Future = TypeVar("_Future")


def check_backend(backend: Backend, workers: int, address: str | None) -> None:
    """Raises `UnknownNameError` and `ValueRangeError` for what does not go together, `RooflangError` for a library that
    is missing."""
    if backend not in get_args(Backend):
        raise UnknownNameError("backend", backend, get_args(Backend), where="--backend")
    if workers < 1:
        raise ValueRangeError(f"{workers} processes", where="--jobs", expected="1 or more")
    if (backend == "local") == (address is not None):
        expected = "--backend dask or --backend ray" if address else f"--address of the {backend} cluster"
        raise ValueRangeError(f"backend {backend} and address {address}", where="--address", expected=expected)
    if backend != "local" or workers > 1:
        _library(backend if backend != "local" else "sweep")


def run_jobs(
    jobs: Iterable[Job], *, backend: Backend, workers: int, address: str | None, progress: Progress
) -> Iterator[Done]:
    """Run the jobs. `progress` sees into jobs that run in this process. Raises as `check_backend` does, and
    `RooflangError` for a cluster that does not answer."""
    check_backend(backend, workers, address)
    if address is not None:
        return _on_dask(jobs, address) if backend == "dask" else _on_ray(jobs, address)
    return _in_processes(jobs, workers) if workers > 1 else (run_job(job, progress) for job in jobs)


def _in_processes(jobs: Iterable[Job], workers: int) -> Iterator[Done]:
    joblib = _library("sweep")
    parallel = joblib.Parallel(n_jobs=workers, backend="loky", return_as="generator_unordered", batch_size=1)
    yield from parallel(joblib.delayed(_run_in_worker)(job) for job in jobs)


def _run_in_worker(job: Job) -> Done:
    """Ctrl-C reaches every process of a terminal; the one that began the sweep ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    return run_job(job)


@cache
def end_with_parent() -> None:
    """Let this worker end when the process that began the sweep does, were it killed: joblib's wait minutes for more
    work."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _on_dask(jobs: Iterable[Job], address: str) -> Iterator[Done]:
    distributed = _library("dask")
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise _no_cluster("Dask", address, error) from error
    with client:

        def wait(futures: list[Any]) -> tuple[list[Any], list[Any]]:
            done, rest = distributed.wait(futures, return_when="FIRST_COMPLETED")
            return list(done), list(rest)

        width = _AHEAD * max(1, sum(client.nthreads().values()))
        for future in _windowed(jobs, width, lambda job: client.submit(run_job, job, pure=False), wait):
            yield future.result()


def _on_ray(jobs: Iterable[Job], address: str) -> Iterator[Done]:
    ray = _library("ray")
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_cluster("Ray", address, error) from error
    try:
        remote = ray.remote(run_job)
        width = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        for future in _windowed(jobs, width, remote.remote, lambda futures: ray.wait(futures, num_returns=1)):
            yield ray.get(future)
    finally:
        ray.shutdown()


def _windowed(
    jobs: Iterable[Job],
    width: int,
    submit: Callable[[Job], _Future],
    wait: Callable[[list[_Future]], tuple[list[_Future], list[_Future]]],
) -> Iterator[_Future]:
    """Submit jobs, so many at a time, and give back what is done first: no cluster has to hold a whole sweep."""
    waiting: list[_Future] = []
    for job in jobs:
        waiting.append(submit(job))
        if len(waiting) >= width:
            done, waiting = wait(waiting)
            yield from done
    while waiting:
        done, waiting = wait(waiting)
        yield from done


def _library(extra: str) -> ModuleType:
    """What an extra of this project installs."""
    name = _LIBRARIES[extra]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RooflangError(
            f"{name} is not installed", where="--backend, --jobs", hint=f"python -m pip install 'rooflang[{extra}]'"
        ) from error


def _no_cluster(kind: str, address: str, error: Exception) -> RooflangError:
    return RooflangError(
        f"no {kind} cluster answers at {address}: {error}",
        where="--address",
        expected=f"the address of a {kind} cluster that runs, whose workers have rooflang installed",
    )
