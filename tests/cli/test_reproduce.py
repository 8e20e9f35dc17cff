"""`rooflang reproduce`: what is asked for, and where the report goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from rooflang.report.reproduction.jobs import Ran
from rooflang.report.reproduction.setting import Scope

Run = Callable[..., Result]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the command asks for, by argument; nothing is computed. `errors` become those of jobs."""
    seen: dict[str, Any] = {"errors": {}}

    def report(names: tuple[str, ...], folder: Path, progress: object, **more: Any) -> tuple[str, Ran]:
        seen.update(names=names, folder=folder, **more)
        return f"# parts: {' '.join(names)}\n", Ran(results={"one": {}}, errors=seen["errors"], kept=1)

    monkeypatch.setattr("rooflang.report.reproduction.report.reproduce", report)
    return seen


def test_everything_goes_to_a_folder_of_its_own(run: Run, folder: Path, asked: dict[str, Any]) -> None:
    outcome = run("reproduce")
    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("wrote reproduced/report.md: 1 results, 1 of them from before")
    assert (folder / "reproduced" / "report.md").read_text(encoding="utf-8").startswith("# parts: tables ratios points")
    assert asked["scope"] == Scope()
    assert asked["workers"] is None


def test_a_part_of_the_evaluation(run: Run, folder: Path, asked: dict[str, Any]) -> None:
    words = ("--what", "tables", "--out", "new/place", "--model", "kimi-k3", "--model", "glm-5.3", "--gpus", "8")
    assert run("reproduce", *words, "--jobs", "1").exit_code == 0
    assert (folder / "new/place/report.md").read_text(encoding="utf-8") == "# parts: tables\n"
    assert asked["scope"] == Scope(models=("glm-5.3", "kimi-k3"), gpus=(8,))
    assert asked["workers"] == 1


def test_what_failed_is_told_and_the_report_is_there(run: Run, folder: Path, asked: dict[str, Any]) -> None:
    asked["errors"] = {"points/one": "no such graph"}
    outcome = run("reproduce")
    assert outcome.exit_code == 2
    assert "1 results are missing; points/one: no such graph" in outcome.stderr
    assert (folder / "reproduced" / "report.md").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--what", "table"), "tables"),
        (("--model", "llama"), "deepseek-v4-flash"),
        (("--gpus", "16"), "8 or 64"),
        (("--jobs", "0"), "--jobs"),
    ],
)
def test_what_is_not_in_the_evaluation_is_refused(
    run: Run, folder: Path, asked: dict[str, Any], words: tuple[str, ...], said: str
) -> None:
    outcome = run("reproduce", *words)
    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert not (folder / "reproduced").exists()


def test_a_file_is_no_folder(run: Run, folder: Path, asked: dict[str, Any]) -> None:
    (folder / "taken").write_text("", encoding="utf-8")
    outcome = run("reproduce", "--out", "taken")
    assert outcome.exit_code == 2
    assert "--out" in outcome.stderr
    assert (folder / "taken").read_text(encoding="utf-8") == ""
