"""`rooflang sweep` and `rooflang sweep export`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]

SPEC = """\
models = ["mlp.rl"]
[[clusters]]
hardware = "b300"
gpus = [1, 2]
[search]
batch = [64]
pp = 1
"""


@pytest.fixture
def spec(folder: Path, graph: str) -> str:
    (folder / "study.toml").write_text(SPEC, encoding="utf-8")
    return "study.toml"


def test_a_sweep_and_its_export(run: Run, spec: str, folder: Path) -> None:
    first = run("sweep", spec)
    assert (first.exit_code, first.stderr) == (0, "")
    assert "2, of which 0 were stored before" in first.stdout and "2 done" in first.stdout
    again = run("sweep", spec)
    assert "2, of which 2 were stored before" in again.stdout and "added       none" in again.stdout
    text = run("sweep", "export", "study.sqlite", "--jsonl", "-").stdout
    assert [json.loads(line)["gpus"] for line in text.splitlines()] == [1, 2]
    outcome = run("sweep", "export", "study.sqlite", "--csv", "a.csv", "--jsonl", "a.jsonl")
    assert (outcome.exit_code, outcome.output) == (0, "")
    assert (folder / "a.jsonl").read_text(encoding="utf-8") == text
    assert len((folder / "a.csv").read_text(encoding="utf-8").splitlines()) == 3


def test_the_store_can_be_elsewhere(run: Run, spec: str, folder: Path) -> None:
    assert run("sweep", "--store", "kept.db", spec).exit_code == 0
    assert (folder / "kept.db").exists() and not (folder / "study.sqlite").exists()


def test_ctrl_c(run: Run, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflang.sweep.backends.run_job", interrupt)
    outcome = run("sweep", spec)
    assert outcome.exit_code == 130
    assert "left        2; the same command goes on from here" in outcome.stdout
    assert "stopped by  interrupted" in outcome.stdout


def test_a_bug_is_told_and_has_its_exit_code(run: Run, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def flawed(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("rooflang.sweep.job._rows", flawed)
    outcome = run("sweep", spec)
    assert outcome.exit_code == 1
    assert "2 cases met one" in outcome.stdout and "ZeroDivisionError" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("none.toml",), "cannot read it"),
        (("study.toml", "--backend", "dsak"), "did you mean dask"),
        (("study.toml", "--backend", "ray"), "--address"),
        (("study.toml", "--jobs", "0"), "--jobs"),
        (("study.toml", "--store", "no/folder"), "no/folder"),
        (("exprot",), "did you mean export"),
        (("export", "none.sqlite", "--csv", "-"), "no such file"),
        (("export", "study.toml", "--csv", "-"), "study.toml"),
        (("export", "study.toml"), "--csv"),
        (("export", "none.sqlite", "--csv", "no/folder"), "--csv"),
    ],
)
def test_bad_input(run: Run, spec: str, folder: Path, arguments: tuple[str, ...], what: str) -> None:
    before = sorted(path.name for path in folder.iterdir())
    outcome = run("sweep", *arguments)
    assert outcome.exit_code == 2
    assert what in outcome.stderr
    assert outcome.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == before


def test_help_of_both(run: Run) -> None:
    assert "export" in run("sweep", "--help").stdout
    assert "SPEC.toml" in run("sweep", "run", "--help").stdout
    assert "--jsonl" in run("sweep", "export", "--help").stdout
