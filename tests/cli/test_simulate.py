"""`rooflang simulate`: one point as text and as JSON, for a model and for a graph of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]

FLASH = ("deepseek-v4-flash", "--hardware", "b300", "--gpus", "8", "--context", "64k", "--assumptions", "paper")


def simulate(run: Run, *arguments: str) -> dict[str, Any]:
    outcome = run("simulate", *arguments, "--json", "-")
    assert outcome.exit_code == 0, outcome.stderr
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def test_json_has_the_schema(run: Run) -> None:
    found = simulate(run, *FLASH, "--batch", "8", "--cp", "8")
    assert set(found) == {"schema", "inputs", "point"}
    assert found["schema"] == "rooflang.result/1"
    inputs, point = found["inputs"], found["point"]
    assert (inputs["model"], inputs["hardware"], inputs["gpus"], inputs["context"]) == (FLASH[0], "b300", 8, 65536)
    assert (inputs["batch"], inputs["dp"], inputs["cp"], inputs["pp"]) == (8, 1, 8, 1)
    assert len(inputs["hash"]) == 16
    for name in ("tok_s_gpu", "tok_s_user", "step_s"):
        assert point[name] > 0
    assert 0 < point["peak_bytes"] <= point["capacity_bytes"]
    assert point["bound_s"] is None
    assert point["gap"] is None
    assert point["pp_partition"] == [43]
    assert point["bottleneck"] in {"compute", "memory", "nvlink", "ib"}
    assert sum(point["groups_s"].values()) >= point["step_s"] * (1 - 1e-9)
    assert {"name", "bytes"} == set(point["largest_tensors"][0])
    assert point["certificate"]["graph"] == inputs["graph"]


def test_text_tells_the_same_numbers(run: Run) -> None:
    arguments = (*FLASH, "--batch", "8", "--cp", "8")
    point = simulate(run, *arguments)["point"]
    text = run("simulate", *arguments).stdout
    assert f"throughput     {point['tok_s_gpu']:,.2f} tok/s/GPU" in text
    assert "largest tensors at the peak" in text
    assert point["largest_tensors"][0]["name"] in text
    assert "\nplan\n" in text
    assert max(map(len, text.splitlines()[:-1])) <= 100


def test_the_command_it_prints_gives_the_same_result(run: Run) -> None:
    arguments = (*FLASH, "--batch", "64", "--dp", "2", "--pp", "4", "--partition", "10,11x3", "--overlap", "none")
    first = run("simulate", *arguments, "--json", "kept.json").stdout
    [command] = [line.strip() for line in first.splitlines() if line.startswith("  rooflang simulate")]
    assert "kept.json" not in command
    assert run(*command.split()[1:]).stdout == first


def test_a_partition_is_shown_by_stage(run: Run) -> None:
    text = run("simulate", *FLASH, "--batch", "64", "--dp", "2", "--pp", "4", "--partition", "10,11x3").stdout
    rows = [line.split() for line in text.splitlines() if line.strip().startswith(("0 ", "1–2 ", "1 ", "3 "))]
    assert [row[1] for row in rows] == ["10", *["11"] * (len(rows) - 1)]
    assert "4 stages of 10,11x3 layers" in text


def test_json_to_standard_output_comes_alone_and_to_a_file_beside_the_text(run: Run, graph: str, folder: Path) -> None:
    arguments = ("simulate", graph, "--hardware", "b300", "--gpus", "1")
    text = run(*arguments, "--json", "out.json").stdout
    assert "throughput" in text
    written = (folder / "out.json").read_text(encoding="utf-8")
    assert json.loads(written) == json.loads(run(*arguments, "--json", "-").stdout)


def test_a_graph_keeps_its_own_batch_unless_told_otherwise(run: Run, graph: str) -> None:
    arguments = (graph, "--hardware", "b300", "--gpus", "1")
    assert simulate(run, *arguments)["point"]["batch"] == 64
    assert simulate(run, *arguments, "--batch", "128")["point"]["batch"] == 128


def test_a_graph_over_several_gpus(run: Run, graph: str) -> None:
    point = simulate(run, graph, "--hardware", "b300", "--gpus", "8", "--dp", "4", "--pp", "2")["point"]
    assert (point["pp"], point["pp_partition"], point["mesh"]) == (2, [1, 1], [4])


@pytest.mark.parametrize("option", ["--context", "--stage"])
def test_a_graph_says_itself_what_a_step_is(run: Run, graph: str, option: str) -> None:
    value = {"--context": "64k", "--stage": "decode"}[option]
    outcome = run("simulate", graph, "--hardware", "b300", "--gpus", "1", option, value)
    assert outcome.exit_code == 2
    assert f"{option}: a graph file says itself" in outcome.stderr


def test_the_hash_follows_the_hardware_file(run: Run, graph: str, folder: Path) -> None:
    from rooflang.hw import schema

    preset = (Path(schema.__file__).parent / "presets" / "b300.toml").read_text(encoding="utf-8")
    hashes = set()
    for name, text in (("a", preset), ("b", preset.replace("7750 GB/s", "7751 GB/s")), ("c", "# prose\n" + preset)):
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
        hashes.add(simulate(run, graph, "--hardware", f"{name}.toml", "--gpus", "1")["inputs"]["hash"])
    assert len(hashes) == 2
