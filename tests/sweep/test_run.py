"""Running sweeps: what is stored is not computed again, whatever ended the sweep before, and whoever else writes."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooflang.errors import RooflangError, UnknownNameError, ValueRangeError
from rooflang.report.sweep import show_summary
from rooflang.search.progress import Progress
from rooflang.sweep import run as module
from rooflang.sweep import run_sweep
from rooflang.sweep.job import Done, Job, run_job

from .conftest import CASES, contents

Contents = list[tuple[str, ...]]


def command(spec: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "rooflang", "sweep", str(spec), *more]


def test_outcomes_are_results_or_reasons(spec: Path, whole: Contents) -> None:
    assert [outcome for _, _, outcome, _, _ in whole].count("done") in range(1, CASES)
    for _, _, outcome, error, result in whole:
        assert (outcome == "done") == bool(result) == (not error)
        assert outcome in ("done", "unreachable")
        assert outcome == "done" or "nearest plan has" in error


def test_a_finished_sweep_computes_nothing(spec: Path, monkeypatch: pytest.MonkeyPatch, whole: Contents) -> None:
    run_sweep(spec)

    def nothing(jobs: Iterator[Job], **options: object) -> Iterator[Done]:
        assert list(jobs) == []
        return iter(())

    monkeypatch.setattr(module, "run_jobs", nothing)
    again = run_sweep(spec)
    assert (again.cases, again.stored, again.added) == (CASES, CASES, 0)
    assert contents(again.store) == whole


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_interrupted_sweep_goes_on(spec: Path, whole: Contents, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    seen: list[Job] = []

    def interrupted(job: Job, progress: Progress | None = None) -> Done:
        if len(seen) == after:
            raise KeyboardInterrupt
        seen.append(job)
        return run_job(job, progress)

    monkeypatch.setattr("rooflang.sweep.backends.run_job", interrupted)
    first = run_sweep(spec)
    assert (first.stopped_by, first.added) == ("interrupted", 3 * after)
    monkeypatch.undo()
    second = run_sweep(spec)
    assert (second.stopped_by, second.stored, second.added) == ("complete", 3 * after, CASES - 3 * after)
    assert contents(second.store) == whole


def test_a_search_cut_short_by_ctrl_c_is_no_answer(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rooflang.search.evaluate import evaluate

    seen: list[int] = []

    def interrupted(*arguments: object, **options: object) -> object:
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return evaluate(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("rooflang.search.tally.evaluate", interrupted)
    summary = run_sweep(spec)
    assert summary.stopped_by == "interrupted"
    assert summary.added in (0, 3)
    assert len(contents(summary.store)) == summary.added


def test_a_bug_ends_one_case_and_not_the_sweep(spec: Path, monkeypatch: pytest.MonkeyPatch, whole: Contents) -> None:
    from rooflang.search.method import Searched

    search = Searched.all.__func__  # type: ignore[attr-defined]

    def flawed(cls: type, method: object, problems: list[object], watch: Progress) -> object:
        if problems[-1].cluster.gpus == 2:  # type: ignore[attr-defined]
            raise ZeroDivisionError("a bug")
        return search(cls, method, problems, watch)

    monkeypatch.setattr(Searched, "all", classmethod(flawed))
    first = run_sweep(spec)
    assert first.added == CASES - 3
    ((crash, cases),) = first.crashes.items()
    assert "ZeroDivisionError: a bug" in crash and cases == 3
    monkeypatch.undo()
    assert contents(run_sweep(spec).store) == whole


def test_progress_tells_how_far_it_is_and_how_long_it_will_go_on(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rooflang.search.progress._QUIET_S", -1.0)
    monkeypatch.setattr("rooflang.search.progress._EVERY_S", -1.0)
    said: list[str] = []
    run_sweep(spec, progress=Progress(sink=said.append))
    assert any("9 of 15 cases, about " in text and " left" in text for text in said)
    assert any("cases" in text and "batch 64" in text for text in said)


def test_processes_of_this_machine(spec: Path, whole: Contents) -> None:
    pytest.importorskip("joblib")
    summary = run_sweep(spec, workers=2)
    assert summary.added == CASES
    assert contents(summary.store) == whole


def test_two_sweeps_may_write_to_one_store(spec: Path, whole: Contents) -> None:
    both = [subprocess.Popen(command(spec), stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        out, _ = process.communicate(timeout=600)
        assert process.returncode == 0, out
    assert contents(spec.with_suffix(".sqlite")) == whole


def test_what_another_sweep_stored_meanwhile_is_not_left(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:

        def overtaken(job: Job, progress: Progress | None = None) -> Done:
            patched.undo()
            assert run_sweep(spec).added == CASES
            return run_job(job, progress)

        patched.setattr("rooflang.sweep.backends.run_job", overtaken)
        summary = run_sweep(spec)
    assert (summary.stored, summary.added, summary.others, summary.left) == (0, 3, CASES - 3, 0)
    text = show_summary(summary)
    assert "stored by another sweep meanwhile" in text
    assert "left" not in text


def test_a_full_disk_loses_nothing(spec: Path, whole: Contents) -> None:
    """No file may grow beyond that size, which is what a full disk looks like to the store."""
    size = 96 * 1024
    outcome = subprocess.run(
        command(spec),
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    assert outcome.returncode == 2, outcome.stdout + outcome.stderr
    assert "study.sqlite" in outcome.stderr and "goes on from there" in outcome.stderr
    assert "Traceback" not in outcome.stderr
    stored = contents(spec.with_suffix(".sqlite"))
    assert 0 < len(stored) < CASES and set(stored) < set(whole)
    assert contents(run_sweep(spec).store) == whole


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"backend": "slurm", "address": "a"}, UnknownNameError),
        ({"backend": "dask"}, ValueRangeError),
        ({"address": "tcp://127.0.0.1:1"}, ValueRangeError),
        ({"workers": 0}, ValueRangeError),
    ],
)
def test_backends_and_addresses_go_together(spec: Path, options: dict[str, object], error: type[RooflangError]) -> None:
    with pytest.raises(error):
        run_sweep(spec, **options)  # type: ignore[arg-type]
