"""Jobs are kept one by one, whatever ends the run; an error of one does not end the others."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rooflang.assumptions import PHYSICAL
from rooflang.errors import ValueRangeError
from rooflang.report.reproduction import jobs as module
from rooflang.report.reproduction.jobs import Job, run_jobs
from rooflang.report.reproduction.store import Store
from rooflang.search.progress import Progress


def calm() -> Progress:
    return Progress(sink=lambda message: None)


def root(*, of: float) -> dict[str, Any]:
    """Work that can be told whether it was done: it cannot be done for less than nothing."""
    if of < 0:
        raise ValueRangeError(f"no root of {of}")
    return {"root": math.sqrt(of)}


def interrupted(*, of: float) -> dict[str, Any]:
    raise KeyboardInterrupt


def roots(*values: float) -> list[Job]:
    return [Job(name=f"root/{value:g}", work=root, asked={"of": value}) for value in values]


def test_results_are_found_by_name_and_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run_jobs(roots(4.0, 9.0), Store(tmp_path), calm(), workers=1)
    assert ran["root/4"] == {"root": 2.0}
    assert (ran.kept, len(ran.results)) == (0, 2)
    monkeypatch.setattr(module, "_call", lambda *_: pytest.fail("it is there already"))
    again = run_jobs(roots(4.0, 9.0), Store(tmp_path), calm(), workers=1)
    assert again.results == ran.results
    assert again.kept == 2


def test_an_error_is_noted_and_tried_again_the_next_time(tmp_path: Path) -> None:
    ran = run_jobs(roots(4.0, -1.0, 9.0), Store(tmp_path), calm(), workers=1)
    assert set(ran.results) == {"root/4", "root/9"}
    assert "no root of -1" in ran.errors["root/-1"]
    assert run_jobs(roots(-1.0), Store(tmp_path), calm(), workers=1).errors


def test_ctrl_c_keeps_what_was_done(tmp_path: Path) -> None:
    jobs = [*roots(4.0), Job(name="last", work=interrupted, asked={"of": 1.0}, weight=0.5)]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, Store(tmp_path), calm(), workers=1)
    assert run_jobs(roots(4.0), Store(tmp_path), calm(), workers=1).kept == 1


def test_the_heaviest_come_first_and_the_rest_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    progress = Progress(sink=said.append)
    monkeypatch.setattr(progress, "say", said.append)
    jobs = [replace(job, weight=weight) for job, weight in zip(roots(4.0, 9.0), (1.0, 3.0))]
    run_jobs(jobs, Store(None), progress, workers=1)
    told = [text for text in said if " of 2 jobs" in text]
    assert told[0] == "0 of 2 jobs: root/9"
    assert told[1].startswith("1 of 2 jobs, about 0 s left: root/4")


def test_processes_give_what_one_gives(tmp_path: Path) -> None:
    jobs = [Job(name=f"one/{n}", work=dict, asked={"n": n}) for n in range(4)]  # it can be imported in any process
    ran = run_jobs(jobs, Store(tmp_path), calm(), workers=2)
    assert ran.results == {f"one/{n}": {"n": n} for n in range(4)}
    assert run_jobs(jobs, Store(tmp_path), calm(), workers=1).kept == 4


ASKED = {"model": "deepseek-v4-flash", "stage": "decode", "context": 4096, "assumptions": "paper"}


def key(**changes: Any) -> str:
    return Job(name="one", work=root, asked={**ASKED, "hardware": "b300", "gpus": 8, **changes}).key


@pytest.mark.parametrize(
    "changes",
    [{"context": 8192}, {"assumptions": "physical"}, {"hardware": "h200"}, {"gpus": 16}, {"batch": 2}],
    ids=lambda changes: next(iter(changes)),
)
def test_the_key_changes_with_what_is_asked(changes: dict[str, Any]) -> None:
    assert key() == key()
    assert key(**changes) != key()


def test_the_key_changes_with_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setitem(module.PROFILES, "physical", replace(PHYSICAL, kv_append=False))
    assert key() != before


@pytest.mark.slow
def test_ctrl_c_lets_running_jobs_finish(tmp_path: Path) -> None:
    code = f"""
import sys, time
sys.path.insert(0, {str(tmp_path)!r})
from pathlib import Path
from sleeping import nap
from rooflang.report.reproduction.jobs import Job, run_jobs
from rooflang.report.reproduction.store import Store
from rooflang.search.progress import Progress
if __name__ == "__main__":
    jobs = [Job(name=f"nap/{{n}}", work=nap, asked={{"folder": {str(tmp_path)!r}, "n": n}}) for n in range(6)]
    run_jobs(jobs, Store(Path({str(tmp_path)!r})), Progress(), workers=2)
"""
    (tmp_path / "sleeping.py").write_text(
        "import time\nfrom pathlib import Path\n"
        "def nap(*, folder, n):\n    Path(folder, f'began-{n}').touch()\n    time.sleep(2)\n    return {'n': n}\n",
        encoding="utf-8",
    )
    (tmp_path / "main.py").write_text(code, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py")],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while not list(tmp_path.glob("began-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to every process
    _, errors = run.communicate(timeout=300)
    assert b"KeyboardInterrupt" in errors
    began, kept = (len(list(tmp_path.glob(pattern))) for pattern in ("began-*", "results/nap/*.json"))
    assert 1 <= began == kept < 6
