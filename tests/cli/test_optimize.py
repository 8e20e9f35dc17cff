"""`rooflang optimize`: the frontier as text and as JSON, for a model and for a graph of one's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]

GRID = ("deepseek-v4-flash", "--hardware", "b300", "--gpus", "8", "--context", "64k", "--search", "grid")
POINT = {
    "batch",
    "tok_s_gpu",
    "tok_s_user",
    "step_s",
    "bound_s",
    "gap",
    "peak_bytes",
    "capacity_bytes",
    "bottleneck",
    "pp",
    "pp_partition",
    "mesh",
    "plan",
    "certificate",
}


def optimize(run: Run, *arguments: str) -> dict[str, Any]:
    outcome = run("optimize", *arguments, "--json", "-")
    assert outcome.exit_code == 0, outcome.stderr
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


@pytest.mark.parametrize("search", ["grid", "egraph"])
def test_json_has_the_schema(run: Run, graph: str, search: str) -> None:
    found = optimize(run, graph, "--hardware", "b300", "--gpus", "2", "--batch", "2,64", "--search", search)
    assert set(found) >= {"schema", "inputs", "frontier", "evaluated", "stopped_by", "seconds"}
    assert found["schema"] == "rooflang.result/1"
    assert (found["inputs"]["model"], found["inputs"]["search"]) == ("mlp", search)
    assert len(found["inputs"]["hash"]) == 16
    assert found["stopped_by"] == "complete"
    assert found["evaluated"]["simulated"] > 0
    assert found["frontier"]
    for point in found["frontier"]:
        assert set(point) >= POINT
        assert (point["gap"] is None) == (point["bound_s"] is None) == (search == "grid")


def test_the_frontier_is_one(run: Run) -> None:
    points = optimize(run, *GRID, "--batch", "8,64,512")["frontier"]
    assert len(points) > 1
    for before, after in pairwise(points):
        assert before["tok_s_user"] > after["tok_s_user"]
        assert before["tok_s_gpu"] < after["tok_s_gpu"]


def test_text_tells_every_point_and_every_plan_once(run: Run, folder: Path) -> None:
    outcome = run("optimize", *GRID, "--batch", "8,64,512", "--json", "out.json")
    assert outcome.exit_code == 0
    found = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    text = outcome.stdout
    for point in found["frontier"]:
        assert f" {point['tok_s_gpu']:,.1f} " in text or f" {point['tok_s_gpu']:,.2f} " in text
    plans = {(point["plan"], *point["mesh"], *point["pp_partition"]) for point in found["frontier"]}
    assert text.count(", on a mesh of ") == len(plans)
    assert "stopped by  complete" in text
    assert found["inputs"]["hash"] in text
    *body, command = text.splitlines()
    assert command.split()[:3] == ["rooflang", "optimize", "deepseek-v4-flash"]
    assert max(map(len, body)) <= 100


def test_the_command_it_prints_gives_the_same_result(run: Run) -> None:
    first = run("optimize", *GRID, "--batch", "8,64", "--assumptions", "paper", "--pp", "2")
    again = run(*first.stdout.splitlines()[-1].split()[1:])
    assert strip_time(again.stdout) == strip_time(first.stdout)


def strip_time(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("stopped by"))


def test_nothing_but_json_reaches_standard_output(folder: Path, graph: str) -> None:
    """In a process of its own, since a library in C may write there behind Python's back."""
    command = [sys.executable, "-m", "rooflang", "optimize", graph, "--hardware", "b300", "--gpus", "4"]
    outcome = subprocess.run([*command, "--batch", "4,64", "--json", "-"], capture_output=True, text=True, cwd=folder)
    assert outcome.stderr == ""
    assert json.loads(outcome.stdout)["frontier"]


def test_quiet_prints_the_frontier_only(run: Run, graph: str) -> None:
    arguments = ("optimize", graph, "--hardware", "b300", "--gpus", "2", "--batch", "2,64", "--search", "grid")
    table = run(*arguments, "--quiet").stdout
    assert table.startswith("plan  batch")
    assert table in run(*arguments).stdout
    assert "again" not in table.lower()


def test_interrupted(run: Run, graph: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflang.search.api.optimize", interrupt)
    outcome = run("optimize", graph, "--hardware", "b300", "--gpus", "2", "--json", "out.json")
    assert outcome.exit_code == 130
    assert outcome.stdout == ""
    assert not (folder / "out.json").exists()


def test_what_was_found_before_an_interruption_is_told(
    run: Run, graph: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rooflang.search import api

    search = api.optimize
    monkeypatch.setattr(api, "optimize", lambda *a, **kw: replace(search(*a, **kw), stopped_by="interrupted"))
    arguments = (graph, "--hardware", "b300", "--gpus", "2", "--batch", "64", "--search", "grid")
    outcome = run("optimize", *arguments, "--json", "out.json")
    assert outcome.exit_code == 130
    assert "stopped by  interrupted" in outcome.stdout
    assert json.loads((folder / "out.json").read_text(encoding="utf-8"))["stopped_by"] == "interrupted"


def test_options_reach_the_search(run: Run, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def record(model: str, **options: Any) -> None:
        seen.update(options, model=model)
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflang.search.api.optimize", record)
    run(
        *("optimize", "config.json", "--hardware", "GB300", "--gpus", "64", "--stage", "prefill", "--context", "1m"),
        *("--batch", "1,2k", "--pp", "4", "--search", "grid", "--overlap", "none", "--assumptions", "paper"),
        *("--disable-rule", "fuse_kernels", "--disable-rule", "dup_kernel", "--time-limit", "90"),
        *("--fix", "mesh=2x8", "--fix", "experts=expert:16,dp=4", "--objective", "cost", "--gpu-hour-usd", "2.5"),
        *("--min-user", "50", "--max-ttft", "2s", "--gap", "1%", "--node-limit", "1m", "--memory-limit", "8GB"),
        *("--seed", "7", "--effort", "look"),
    )
    seen.pop("progress")
    assert seen == {
        "max_gpus": None,
        "fix": ("mesh=2x8", "experts=expert:16,dp=4"),
        "objective": "cost",
        "gpu_hour_usd": 2.5,
        "min_user": 50,
        "max_ttft_s": 2,
        "gap": 0.01,
        "node_limit": 2**20,
        "memory_limit_bytes": 8e9,
        "seed": 7,
        "effort": "look",
        "time_limit_s": 90,
        "model": "config.json",
        "hardware": "gb300",
        "gpus": 64,
        "stage": "prefill",
        "context": 2**20,
        "batch": (1, 2048),
        "pp": 4,
        "search": "grid",
        "overlap": "none",
        "assumptions": "paper",
        "disable_rules": ("fuse_kernels", "dup_kernel"),
    }
