"""`rooflang verify`: what `--json` wrote is accepted, what was changed in it is not; rules on trial."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from rooflang.soundness import report
from rooflang.soundness.report import Report, verify_rules

Run = Callable[..., Result]


@pytest.fixture
def saved(run: Run, graph: str) -> Path:
    """A frontier of a graph that is no transformer."""
    outcome = run("optimize", graph, "--hardware", "b300", "--gpus", "4", "--search", "grid", "--json", "out.json")
    assert outcome.exit_code == 0
    return Path("out.json")


def test_a_saved_frontier_is_accepted(run: Run, graph: str, saved: Path) -> None:
    outcome = run("verify", str(saved), "--model", graph, "--json", "verdict.json")
    assert outcome.exit_code == 0
    points = json.loads(saved.read_text())["frontier"]
    lines = outcome.stdout.splitlines()
    assert lines[-1] == f"accepted: {len(points)} points of mlp"
    assert len(lines) == len(points) + 1
    verdict = json.loads(Path("verdict.json").read_text())
    assert verdict["schema"] == "rooflang.verified/1"
    assert len(verdict["points"]) == len(points)


def test_a_saved_simulation_is_accepted(run: Run, graph: str) -> None:
    run("simulate", graph, "--hardware", "b300", "--gpus", "4", "--dp", "4", "--json", "point.json")
    assert run("verify", "point.json", "--model", graph).exit_code == 0


def test_a_changed_number_is_named(run: Run, graph: str, saved: Path) -> None:
    data = json.loads(saved.read_text())
    data["frontier"][0]["tok_s_gpu"] *= 2
    saved.write_text(json.dumps(data))
    outcome = run("verify", str(saved), "--model", graph)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert "frontier[0]" in outcome.stderr
    assert "tok_s_gpu" in outcome.stderr


def test_a_changed_step_is_named(run: Run, graph: str, saved: Path) -> None:
    data = json.loads(saved.read_text())
    kernel = data["frontier"][0]["certificate"]["kinds"][0]["kernels"][0]
    kernel["steps"][0] = {**kernel["steps"][0], "primitive": "split_kernel", "dim": "ffn2"}
    saved.write_text(json.dumps(data))
    outcome = run("verify", str(saved), "--model", graph)
    assert outcome.exit_code == 2
    assert "split_kernel of" in outcome.stderr
    assert "'ffn2'" in outcome.stderr


def test_a_graph_has_to_be_named(run: Run, saved: Path) -> None:
    outcome = run("verify", str(saved))
    assert outcome.exit_code == 2
    assert "mlp" in outcome.stderr


@pytest.mark.parametrize("arguments", [(), ("out.json", "--rules"), ("missing.json",)])
def test_there_has_to_be_one_thing_to_verify(run: Run, arguments: tuple[str, ...]) -> None:
    outcome = run("verify", *arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "Error" in outcome.stderr


def few(**options: object) -> Report:
    """A trial of one rule, short."""
    return verify_rules(examples=10, seeds=1, names=["add_control_edge"])


def test_rules_have_a_line_each_and_a_last_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "verify_rules", few)
    outcome = run("verify", "--rules", "--json", "-")
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)["rules"][0]["rule"] == "add_control_edge"
    lines = run("verify", "--rules").stdout.splitlines()
    assert lines[1].startswith("add_control_edge")
    assert lines[-1].startswith("sound: 1 rules")


def test_a_refuted_rule_is_a_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "verify_rules", few)
    monkeypatch.setattr(report, "_first", lambda *_: "something else came out")
    outcome = run("verify", "--rules")
    assert outcome.exit_code == 1
    assert "something else came out" in outcome.stdout
