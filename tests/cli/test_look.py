"""A closer look at one point: every overlap, the explanation, the trace, every rank, a plan replayed from a result."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]

FLASH = ("deepseek-v4-flash", "--hardware", "b300", "--gpus", "8", "--context", "64k", "--batch", "64", "--dp", "8")
SMALL = ("--hardware", "b300", "--gpus", "4")


def simulate(run: Run, *arguments: str) -> dict[str, Any]:
    outcome = run("simulate", *arguments, "--json", "-")
    assert outcome.exit_code == 0, outcome.stderr
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def test_all_overlaps_are_those_of_the_single_modes(run: Run) -> None:
    found = simulate(run, *FLASH, "--overlap", "all")
    assert found["inputs"]["overlap"] == "all"
    for name, mode in (("floor", "none"), ("schedule", "two-batch"), ("ceiling", "perfect")):
        alone = simulate(run, *FLASH, "--overlap", mode)["point"]
        same = ("overlap", "step_s", "tok_s_gpu", "tok_s_user", "peak_bytes", "bottleneck", "groups_s")
        assert {key: found["bracket"][name][key] for key in same} == {key: alone[key] for key in same}
    assert found["bracket"]["refusal"] == ""
    assert found["point"]["step_s"] == found["bracket"]["ceiling"]["step_s"] < found["bracket"]["floor"]["step_s"]


def test_all_overlaps_as_text(run: Run) -> None:
    text = run("simulate", *FLASH, "--overlap", "all").stdout
    assert "; every overlap, physical assumptions" in text
    rows = [line.split()[:2] for line in text.splitlines()]
    for row in (["floor", "none"], ["schedule", "two-batch"], ["ceiling", "perfect"]):
        assert row in rows
    assert max(map(len, text.splitlines()[:-1])) <= 100


def test_a_batch_that_cannot_be_halved_has_no_schedule(run: Run, graph: str) -> None:
    found = simulate(run, graph, *SMALL, "--dp", "4", "--batch", "4", "--overlap", "all")
    assert found["bracket"]["schedule"] is None
    assert found["bracket"]["refusal"]
    text = run("simulate", graph, *SMALL, "--dp", "4", "--batch", "4", "--overlap", "all").stdout
    assert f"no schedule of two micro-batches: {found['bracket']['refusal']}" in " ".join(text.split())
    outcome = run("simulate", graph, *SMALL, "--dp", "4", "--batch", "4", "--overlap", "two-batch")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert found["bracket"]["refusal"] in outcome.stderr


@pytest.mark.parametrize("overlap", ["none", "perfect", "two-batch"])
def test_an_explanation_adds_up(run: Run, overlap: str) -> None:
    found = simulate(run, *FLASH, "--overlap", overlap, "--explain")
    told, step_s = found["explanation"], found["point"]["step_s"]
    assert told["path_s"] == pytest.approx(sum(step["end_s"] - step["start_s"] for step in told["path"]))
    for name in ("by_bound", "by_group", "by_operator"):
        assert sum(part["seconds"] for part in told[name]) == pytest.approx(told["path_s"])
    if overlap != "perfect":
        assert told["path_s"] == pytest.approx(step_s, rel=1e-9)
    for change in told["what_if"]:
        assert change["factor"] == 1.1
        assert change["gain"] == pytest.approx(step_s / change["step_s"] - 1.0)
    best = told["what_if"][0]
    assert best["change"] == "HBM bandwidth"
    assert 0.05 < best["gain"] <= 0.1 + 1e-9


def test_an_explanation_as_text(run: Run) -> None:
    text = run("simulate", *FLASH, "--explain").stdout
    assert "critical path of the slowest stage: " in text
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    for head in ("waiting for", "longest, all layers together", "what if"):
        assert head in rows
    assert rows["HBM bandwidth 10% better"][-1].startswith("+")
    assert rows["fp8 peak 10% better"][-1] == "–"
    assert max(map(len, text.splitlines()[:-1])) <= 100
    assert "critical path" not in run("simulate", *FLASH).stdout


@pytest.mark.parametrize("name", ["step.json", "step.json.gz"])
def test_a_trace_has_a_slice_for_every_operator_that_takes_time(run: Run, folder: Path, name: str) -> None:
    found = simulate(run, *FLASH, "--overlap", "none", "--explain", "--trace", name)
    data = (folder / name).read_bytes()
    events = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)["traceEvents"]
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["stage 0 (×8)"]
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == len(found["explanation"]["path"])
    end_us = max(e["ts"] + e["dur"] for e in slices)
    assert end_us / 1e6 == pytest.approx(found["point"]["step_s"], abs=1e-9)
    assert [path.name for path in folder.iterdir()] == [name]


def test_a_trace_leaves_the_result_as_it_is(run: Run, folder: Path) -> None:
    assert run("simulate", *FLASH, "--trace", "step.json").stdout == run("simulate", *FLASH).stdout


@pytest.mark.parametrize("overlap", ["perfect", "two-batch"])
def test_every_rank_alone_gives_the_same(run: Run, overlap: str) -> None:
    alike, explicit = (simulate(run, *FLASH, "--overlap", overlap, *more) for more in ((), ("--explicit",)))
    assert explicit == alike
    counts = [
        int(line.split()[1].replace(",", ""))
        for more in ((), ("--explicit",))
        for line in run("simulate", *FLASH, "--overlap", overlap, *more).stdout.splitlines()
        if line.startswith("  simulated ")
    ]
    assert counts[1] > counts[0]


def test_the_command_it_prints_gives_the_same_text(run: Run, folder: Path) -> None:
    arguments = (*FLASH, "--explain", "--explicit", "--overlap", "two-batch", "--trace", "step.json")
    first = run("simulate", *arguments).stdout
    command = first.splitlines()[-1].split()[1:]
    assert "--trace" not in command
    assert run(*command).stdout == first


# -- plans replayed ---------------------------------------------------------------------------------------------------


def test_each_point_of_a_frontier_is_replayed_to_its_numbers(run: Run, graph: str) -> None:
    run("optimize", graph, *SMALL, "--batch", "4,64,1024", "--json", "out.json")
    frontier = json.loads(Path("out.json").read_text(encoding="utf-8"))["frontier"]
    assert len(frontier) > 1
    for number, point in enumerate(frontier, start=1):
        assert point["certificate"].pop("evaluated")["verdict"] == "equal"  # what was replayed is not evaluated again
        again = simulate(run, graph, *SMALL, "--replay", "out.json", "--point", str(number))["point"]
        for name in ("batch", "step_s", "tok_s_gpu", "peak_bytes", "groups_s", "plan", "certificate", "mesh"):
            assert again[name] == point[name]
    other = simulate(run, graph, *SMALL, "--replay", "out.json", "--batch", "128")
    assert (other["point"]["batch"], other["point"]["plan"]) == (128, frontier[0]["plan"])
    assert "dp" not in other["inputs"]


def test_what_simulate_wrote_is_replayed(run: Run, graph: str) -> None:
    run("simulate", graph, *SMALL, "--dp", "2", "--pp", "2", "--json", "out.json")
    first = run("simulate", graph, *SMALL, "--replay", "out.json").stdout
    point = json.loads(Path("out.json").read_text(encoding="utf-8"))["point"]
    assert simulate(run, graph, *SMALL, "--replay", "out.json")["point"]["step_s"] == point["step_s"]
    assert run(*first.splitlines()[-1].split()[1:]).stdout == first


def test_the_hash_follows_the_plan(run: Run, graph: str) -> None:
    hashes = set()
    for pp in ("1", "2"):
        run("simulate", graph, *SMALL, "--dp", str(4 // int(pp)), "--pp", pp, "--json", "out.json")
        hashes.add(simulate(run, graph, *SMALL, "--replay", "out.json")["inputs"]["hash"])
    assert len(hashes) == 2
