"""A process that is killed takes its own work with it and no other; processes are replaced, and none gets lost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rooflang.report.reproduction import crew as module
from rooflang.report.reproduction.crew import Crew
from rooflang.report.reproduction.jobs import Job, run_jobs
from rooflang.report.reproduction.store import Store
from rooflang.search.progress import Progress


def call(work: Callable[..., Any], asked: Mapping[str, Any]) -> Any:
    return work(**asked)


def pid() -> int:
    return os.getpid()


def quit_once(*, folder: str, code: int) -> dict[str, Any]:
    """As if the system ended this process; not again where a file says that it did."""
    mark = Path(folder) / "quit"
    if not mark.exists():
        mark.touch()
        os._exit(code)
    return {"after": "all"}


def test_processes_are_replaced_and_none_gets_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REPLACED_AFTER", 2)
    pids: Counter[int] = Counter()
    left = list(range(6))
    with Crew[int, int](2, call) as crew:
        while left or crew.running:
            while left and crew.free:
                crew.start(left.pop(), pid, {})
            assert len(crew.running) <= 2
            for _, answer in crew.finished():
                assert answer is not None
                pids[answer] += 1
    assert sum(pids.values()) == 6
    assert len(pids) >= 3
    assert max(pids.values()) <= 2
    assert os.getpid() not in pids


def test_a_job_whose_process_was_killed_is_tried_once_more(tmp_path: Path) -> None:
    quits = {"folder": str(tmp_path), "code": 9}
    some = [
        Job(name="quits", work=quit_once, asked=quits),
        *(Job(name=f"n/{n}", work=dict, asked={"n": n}) for n in "ab"),
    ]
    ran = run_jobs(some, Store(tmp_path), Progress(sink=lambda message: None), workers=2)
    assert not ran.errors
    assert ran["quits"] == {"after": "all"}
    assert ran["n/a"] == {"n": "a"}


def test_one_that_is_killed_again_is_an_error(tmp_path: Path) -> None:
    some = [Job(name="quits", work=_always, asked={}), *(Job(name=f"n/{n}", work=dict, asked={"n": n}) for n in "ab")]
    ran = run_jobs(some, Store(tmp_path), Progress(sink=lambda message: None), workers=2)
    assert set(ran.results) == {"n/a", "n/b"}
    assert "killed" in ran.errors["quits"]


def _always() -> dict[str, Any]:
    os._exit(9)


def test_a_mistake_in_one_job_is_told_with_its_place(tmp_path: Path) -> None:
    some = [
        Job(name="wrong", work=_wrong, asked={}),
        Job(name="inf", work=_endless, asked={}),
        Job(name="n", work=dict, asked={}),
    ]
    ran = run_jobs(some, Store(tmp_path), Progress(sink=lambda message: None), workers=1)
    assert set(ran.results) == {"n"}
    assert ran.errors["wrong"].startswith("ZeroDivisionError: ")
    assert "(test_crew.py, line " in ran.errors["wrong"]
    assert "ValueError" in ran.errors["inf"]  # JSON has no such number


def _wrong() -> dict[str, Any]:
    return {"none": 1 // 0}


def _endless() -> dict[str, Any]:
    return {"gap": float("inf")}


def test_results_are_what_their_files_say(tmp_path: Path) -> None:
    job = Job(name="pair", work=_pair, asked={})
    (first, again) = (run_jobs([job], Store(tmp_path), Progress(sink=lambda message: None), workers=1) for _ in "12")
    assert first.results == again.results == {"pair": {"layers": [1, 2]}}


def _pair() -> dict[str, Any]:
    return {"layers": (1, 2)}
