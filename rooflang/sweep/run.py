"""A sweep, run or gone on with: every case that the store lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rooflang.search.progress import Progress
from rooflang.sweep.backends import Backend, check_backend, run_jobs
from rooflang.sweep.cases import jobs as jobs_of
from rooflang.sweep.job import Done, Job
from rooflang.sweep.spec import read_spec
from rooflang.sweep.store import Store


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a sweep came to: its cases, how many were `stored` before it began, the `outcomes` of those that it added,
    how many `others` stored meanwhile, the tracebacks of `crashes`, and what stopped it: `complete`, or
    `interrupted`."""

    store: Path
    cases: int
    stored: int
    outcomes: Mapping[str, int]
    others: int
    crashes: Mapping[str, int]
    stopped_by: str
    seconds: float

    @property
    def added(self) -> int:
        return sum(self.outcomes.values())

    @property
    def left(self) -> int:
        """Cases that nobody has stored."""
        return self.cases - self.stored - self.added - self.others


def run_sweep(
    spec: str | Path,
    *,
    store: str | Path | None = None,
    backend: Backend = "local",
    workers: int = 1,
    address: str | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Compute the cases of a sweep's file that the store (by default beside the file, ending in .sqlite) does not have.

    Each is stored when it is finished, so that the same call goes on where another one ended. Ctrl-C ends it. Raises a
    `RooflangError` for a file or a store that cannot be used, and a cluster that cannot be reached.
    """
    check_backend(backend, workers, address)
    path = Path(spec)
    todo = jobs_of(read_spec(path), path.parent)
    watch = progress or Progress()
    with Store(Path(store) if store is not None else path.with_suffix(".sqlite")) as kept:
        run = _Run(todo, kept, watch)
        stopped_by = "complete"
        told = Progress(sink=lambda message: watch.say(f"{run.state}  {message.split('  ', 1)[-1]}"))
        try:
            for done in run_jobs(run.waiting(), backend=backend, workers=workers, address=address, progress=told):
                run.note(done)
        except KeyboardInterrupt:
            stopped_by = "interrupted"
        watch.done()
        return Summary(
            store=kept.path,
            cases=run.cases,
            stored=run.stored,
            outcomes=dict(sorted(run.outcomes.items())),
            others=run.present - run.stored - sum(run.outcomes.values()),
            crashes=dict(run.crashes),
            stopped_by=stopped_by,
            seconds=watch.elapsed_s,
        )


class _Run:
    """The state of a running sweep."""

    def __init__(self, jobs: tuple[Job, ...], store: Store, watch: Progress) -> None:
        self._jobs, self._store, self._watch = jobs, store, watch
        self._known = store.keys()
        self._wanted = {case.key for job in jobs for case in job.cases}
        self.cases = len(self._wanted)
        self.stored = self.present
        self.outcomes: Counter[str] = Counter()
        self.crashes: Counter[str] = Counter()

    def waiting(self) -> Iterator[Job]:
        """Jobs with the cases that nobody has stored by the time that they are asked for. Backends may ask from threads
        of their own, so that the store is not read here."""
        for job in self._jobs:
            cases = tuple(case for case in job.cases if case.key not in self._known)
            if cases:
                yield replace(job, cases=cases)

    def note(self, done: Done) -> None:
        """Store what is finished, and see what others have stored in the same file meanwhile."""
        if done.crash:
            self.crashes[done.crash] += done.cases
            return
        self._store.add(done.rows)
        self._known = self._store.keys()
        self.outcomes.update(row.outcome for row in done.rows)
        self._watch.say(self.state)

    @property
    def present(self) -> int:
        """Cases that the store has, as far as this sweep has seen."""
        return len(self._wanted & self._known)

    @property
    def state(self) -> str:
        """How far it is, and about how long it will go on."""
        done = sum(self.outcomes.values())
        left_s = (self.cases - self.present) * self._watch.elapsed_s / done if done else None
        left = "" if left_s is None else f", about {_show_time(left_s)} left"
        return f"{self.present} of {self.cases} cases{left}"


def _show_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
