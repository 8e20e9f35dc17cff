"""Bad input of the options that look closer at a point: typed errors, no traceback, no file left behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]

SMALL = ("--hardware", "b300", "--gpus", "4")


def refused(run: Run, folder: Path, *arguments: str) -> str:
    before = {path.name for path in folder.iterdir()}
    outcome = run(*arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("Error: ")
    assert {path.name for path in folder.iterdir()} == before
    return outcome.stderr


REFUSED = {
    "unknown overlap": (("--overlap", "two-batches"), "did you mean two-batch"),
    "trace without a suffix": (("--trace", "step.txt"), "--trace: 'step.txt' is no name of a trace"),
    "trace to standard output": (("--trace", "-"), "expected: FILE.json or FILE.json.gz"),
    "trace nowhere": (("--trace", "no/step.json"), "--trace: cannot write 'no/step.json': there is no folder"),
    "trace over the JSON": (("--trace", "a.json", "--json", "a.json"), "--trace: 'a.json' is taken by --json"),
    "explicit and all": (("--explicit", "--overlap", "all"), "--explicit: every rank under every overlap"),
    "point of no file": (("--point", "1"), "--point: there is no file to take it from"),
    "point 0": (("--replay", "x.json", "--point", "0"), "--point: 0 is not possible"),
    "no such file": (("--replay", "x.json"), "--replay: cannot read 'x.json'"),
    "a folder": (("--replay", "."), "--replay: cannot read '.'"),
}


@pytest.mark.parametrize(("arguments", "what"), REFUSED.values(), ids=REFUSED)
def test_refused(run: Run, folder: Path, graph: str, arguments: Sequence[str], what: str) -> None:
    assert what in refused(run, folder, "simulate", graph, "--hardware", "b300", "--gpus", "1", *arguments)


def test_optimize_takes_what_it_can_bound(run: Run, folder: Path, graph: str) -> None:
    text = refused(run, folder, "optimize", graph, *SMALL, "--overlap", "all")
    assert "--overlap: unknown overlap 'all'\n  expected: one of none, perfect, two-batch" in text


@pytest.mark.parametrize("option", [("--dp", "4"), ("--cp", "1"), ("--pp", "2"), ("--partition", "1,1")])
def test_a_plan_says_itself_how_it_is_laid_out(run: Run, folder: Path, graph: str, option: tuple[str, str]) -> None:
    saved(run, graph)
    text = refused(run, folder, "simulate", graph, *SMALL, "--replay", "out.json", *option)
    assert f"{option[0]}: the plan says itself" in text


def saved(run: Run, graph: str) -> dict[str, Any]:
    assert run("simulate", graph, *SMALL, "--dp", "4", "--json", "out.json").exit_code == 0
    data: dict[str, Any] = json.loads(Path("out.json").read_text(encoding="utf-8"))
    return data


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "is no JSON"),
        ("\xff", "holds no points"),
        ("[]", "holds no points"),
        ('{"schema": "rooflang.tables/1", "rows": []}', "holds no points"),
        ('{"schema": "rooflang.result/1", "frontier": []}', "holds no points"),
        ('{"schema": "rooflang.result/1", "frontier": 3}', "holds no points"),
        ('{"schema": "rooflang.result/1", "point": {"batch": 1}}', "holds no points"),
        ('{"schema": "rooflang.result/1", "point": {"batch": "x", "certificate": {}}}', "holds no points"),
        ('{"schema": "rooflang.result/1", "point": {"batch": 1, "certificate": {}}}', "certificate: "),
    ],
)
def test_a_file_that_is_no_result(run: Run, folder: Path, graph: str, text: str, what: str) -> None:
    (folder / "out.json").write_text(text if text != "\xff" else '"\xff"', encoding="utf-8")
    assert what in refused(run, folder, "simulate", graph, *SMALL, "--replay", "out.json")


def test_bytes_that_are_no_text(run: Run, folder: Path, graph: str) -> None:
    (folder / "out.json").write_bytes(b"\xff\xfe")
    assert "is no JSON" in refused(run, folder, "simulate", graph, *SMALL, "--replay", "out.json")


def test_a_point_that_the_file_does_not_have(run: Run, folder: Path, graph: str) -> None:
    saved(run, graph)
    text = refused(run, folder, "simulate", graph, *SMALL, "--replay", "out.json", "--point", "2")
    assert "--point: point 2 of 1" in text


def test_a_plan_of_another_graph_or_cluster(run: Run, folder: Path, graph: str) -> None:
    saved(run, graph)
    text = refused(run, folder, "simulate", graph, "--hardware", "b300", "--gpus", "8", "--replay", "out.json")
    assert "8" in text
    (folder / graph).write_text((folder / graph).read_text(encoding="utf-8").replace("4096", "2048"), encoding="utf-8")
    text = refused(run, folder, "simulate", graph, *SMALL, "--replay", "out.json")
    assert "certificate: it was made for another graph" in text


def test_a_plan_that_was_changed(run: Run, folder: Path, graph: str) -> None:
    data = saved(run, graph)
    data["point"]["certificate"]["kinds"][0]["kernels"][0]["steps"][0]["dim"] = "hidden-batch"
    (folder / "out.json").write_text(json.dumps(data), encoding="utf-8")
    assert "certificate: " in refused(run, folder, "simulate", graph, *SMALL, "--replay", "out.json")
