"""`--html`, `--plot`, and `rooflang explain` of a saved result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from rooflang.report.html import look as looking

Run = Callable[..., Result]


def page_data(path: str) -> Any:
    text = Path(path).read_text(encoding="utf-8")
    (found,) = re.findall(r'id="data">(.*?)</script>', text, re.S)
    return json.loads(found)


@pytest.fixture
def saved(run: Run, graph: str) -> str:
    """The name of a file with a frontier of the graph."""
    found = run("optimize", graph, "--hardware", "b300", "--gpus", "4", "--batch", "1,64", "--json", "out.json")
    assert found.exit_code == 0
    return "out.json"


def test_a_search_writes_its_page_and_its_figure(run: Run, graph: str) -> None:
    asked = ("optimize", graph, "--hardware", "b300", "--gpus", "4", "--batch", "1,64", "--seed", "7")
    found = run(*asked, "--html", "r.html", "--plot", "r.svg", "--json", "r.json", "--gpu-hour-usd", "3")
    assert found.exit_code == 0
    data, told = page_data("r.html"), json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert [p["step_s"] for p in data["points"]] == [p["step_s"] for p in told["frontier"]]
    assert all(p["close"]["blocks"] and p["usd"] > 0 for p in data["points"])
    text = Path("r.html").read_text(encoding="utf-8")
    command = "rooflang optimize mlp.rl --hardware b300 --gpus 4 --gpu-hour-usd 3 --batch 1,64 --seed 7"
    assert command in text and command in found.stdout
    assert told["inputs"]["hash"] in text and "<dt>seed</dt><dd>7</dd>" in text
    assert Path("r.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_simulation_writes_its_page(run: Run, graph: str) -> None:
    found = run("simulate", graph, "--hardware", "b300", "--gpus", "4", "--dp", "2", "--pp", "2", "--html", "s.html")
    assert found.exit_code == 0
    (point,) = page_data("s.html")["points"]
    assert len(point["close"]["lanes"]) == 2 and point["bound_s"] is None


def test_a_simulation_under_every_overlap_compares_them(run: Run, graph: str) -> None:
    found = run(
        "simulate", graph, "--hardware", "b300", "--gpus", "4", "--dp", "4", "--overlap", "all", "--html", "s.html"
    )
    assert found.exit_code == 0
    text = Path("s.html").read_text(encoding="utf-8")
    assert "Every overlap" in text and all(f">{name}</td>" in text for name in ("floor", "schedule", "ceiling"))


def test_the_terminal_says_the_same_of_a_saved_point(run: Run, saved: str, graph: str) -> None:
    found = run("explain", saved, "--model", graph, "--point", "2", "--html", "e.html", "--plot", "e.png")
    assert found.exit_code == 0
    data = page_data("e.html")
    assert data["first"] == 1 and len(data["points"]) == 2
    for block in data["points"][1]["close"]["blocks"]:
        assert f"block {block['name']}" in found.stdout
    for change in data["points"][1]["close"]["explanation"]["what_if"]:
        assert change["change"] in found.stdout
    assert "above\n" in found.stdout and "assumptions: physical" in found.stdout
    assert Path("e.png").read_bytes().startswith(b"\x89PNG")


def test_a_closer_look_as_json(run: Run, saved: str, graph: str) -> None:
    told = json.loads(run("explain", saved, "--model", graph, "--json", "-").stdout)
    assert told["schema"] == "rooflang.close-up/1"
    assert told["close_up"]["blocks"] and told["point"]["batch"] == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--point", "3"), "point 3 of 2"),
        (("--context", "64k"), "--context: a result says itself"),
        (("--batch", "4"), "--batch: a result says itself"),
        (("--html", "page.txt"), "no name of a page"),
        (("--plot", "frontier.gif"), "no name of a figure"),
    ],
)
def test_what_a_result_does_not_take(run: Run, saved: str, graph: str, options: tuple[str, ...], says: str) -> None:
    found = run("explain", saved, "--model", graph, *options)
    assert found.exit_code != 0 and says in found.output


@pytest.mark.parametrize("options", [("--point", "1"), ("--html", "x.html"), ("--model", "y")])
def test_what_is_about_results_only(run: Run, options: tuple[str, ...]) -> None:
    found = run("explain", "llama-3.1-8b", "--context", "4k", *options)
    assert found.exit_code != 0 and f"{options[0]}: it is about a result" in found.output
    assert not Path("x.html").exists()


def test_a_model_still_needs_a_context(run: Run) -> None:
    found = run("explain", "llama-3.1-8b")
    assert found.exit_code == 2 and "--context" in found.output


def test_ctrl_c_leaves_the_points_that_were_looked_at(run: Run, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = looking.look, []

    def once(*given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return whole(*given, **named)

    monkeypatch.setattr(looking, "look", once)
    found = run("optimize", graph, "--hardware", "b300", "--gpus", "4", "--batch", "1,64", "--html", "r.html")
    assert found.exit_code == 130 and "tok/s/GPU" in found.stdout
    assert [p["close"] is None for p in page_data("r.html")["points"]] == [False, True]


def test_a_page_that_cannot_be_written_is_refused_before_any_work(run: Run, graph: str) -> None:
    found = run("optimize", graph, "--hardware", "b300", "--gpus", "4", "--html", "none/r.html")
    assert found.exit_code != 0 and "no folder" in found.output


@pytest.mark.slow
def test_a_planned_service_writes_its_page(run: Run) -> None:
    asked = ("plan", "llama-3.1-8b", "--hardware", "h100", "--gpus", "2", "--isl", "4k", "--osl", "1k")
    found = run(*asked, "--html", "p.html")
    assert found.exit_code == 0
    data = page_data("p.html")
    assert not data["chart"] and {"prefill", "decode"} <= {re.split("[,:] ?", p["label"])[1] for p in data["points"]}
    assert "The service" in Path("p.html").read_text(encoding="utf-8")
