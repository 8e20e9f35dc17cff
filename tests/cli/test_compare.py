"""`rooflang compare`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Run = Callable[..., Result]

TASK = ("--hardware", "b300", "--gpus", "4")


def test_a_table_and_a_file(run: Run, folder: Path, graph: str) -> None:
    told = run("compare", graph, *TASK, "--agents", "greedy,random", "--budget", "4", "--json", "found.json")
    assert told.exit_code == 0
    names = [line.split()[0] for line in told.output.splitlines()[4:8]]
    assert names == ["grid", "greedy", "random", "optimize"]
    data = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    steps = {row["name"]: row["point"]["step_s"] for row in data["contenders"]}
    assert min(steps, key=lambda name: (steps[name], name != "optimize")) == "optimize"
    assert data["contenders"][1]["simulations"] <= 4
    assert "Again:\n  rooflang compare" in told.output


def test_journals_are_compared(run: Run, folder: Path, graph: str) -> None:
    run("compare", graph, *TASK, "--agents", "greedy", "--budget", "6", "--json", "found.json")
    row = json.loads((folder / "found.json").read_text(encoding="utf-8"))["contenders"][1]
    (folder / "own.journal").write_text(row["journal"], encoding="utf-8")
    told = run("compare", graph, *TASK, "--agents", "", "--journal", "own.journal", "--json", "-")
    again = json.loads(told.stdout)["contenders"]
    assert [each["name"] for each in again] == ["grid", "own.journal", "optimize"]
    assert again[1]["point"]["step_s"] == row["point"]["step_s"]


def test_what_cannot_be_compared(run: Run, folder: Path, graph: str) -> None:
    (folder / "other.journal").write_text("model mlp\nhardware b300\ngpus 8\n\n", encoding="utf-8")
    for words, said in [
        (("--agents", "gredy"), "did you mean greedy"),
        (("--journal", "none.journal"), "none.journal"),
        (("--journal", "other.journal"), "another cluster"),
        (("--budget", "0"), "--budget"),
        (("--agents", "", "--run", "no-such-command-anywhere"), "cannot run"),
    ]:
        told = run("compare", graph, *TASK, *words)
        assert told.exit_code == 2, told.output
        assert said in told.output
    assert run("compare", "deepseek-v4-pro", *TASK).exit_code == 2  # a model needs a context
