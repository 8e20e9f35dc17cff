"""A comparison as text."""

from __future__ import annotations

from typing import Any

from rooflang.report.compare import show_comparison


def row(name: str, *, pp: int = 1, verdict: str = "yes", reason: str = "", note: str = "", some: bool = True) -> Any:
    point = {
        "step_s": 0.002,
        "tok_s_gpu": 4000.0,
        "gap": 0.0123,
        "pp": pp,
        "pp_partition": [2] * pp,
        "mesh": [2, 4],
        "plan": f"matmul: ffn→8; pipeline {pp}",
    }
    return {
        "name": name,
        "point": point if some else None,
        "derivable": {"verdict": verdict, "reason": reason} if some else None,
        "simulations": 1200,
        "seconds": 3.0,
        "journal": "",
        "note": note,
    }


def told(*rows: Any, bound_s: float | None = 0.00198, replayed: int | None = 25) -> dict[str, Any]:
    inputs = {
        "model": "mlp",
        "context": 0,
        "gpus": 8,
        "hardware": "b300",
        "overlap": "perfect",
        "assumptions": "physical",
        "batch": 1024,
        "budget": 1200,
        "seed": 7,
    }
    return {
        "inputs": inputs,
        "contenders": list(rows),
        "bound_s": bound_s,
        "bound_scope": "everything",
        "replayed": replayed,
        "stopped_by": "complete",
        "seconds": 4.0,
    }


def test_one_line_each_and_plans_in_words() -> None:
    text = show_comparison(told(row("greedy", pp=2), row("optimize")), "rooflang compare …")
    assert "batch 1k, 1,200 simulations for each scripted agent, seed 7" in text
    assert "2.000 ms" in text or "2 ms" in text
    assert "greedy, in 3 s\n" in text
    assert "1.23%" in text and "4,000.0" in text and "2x4" in text
    assert "pipeline 2 stages of 2x2 layers" in text and "pipeline 1 stage\n" in text
    assert "1.98 ms: everything" in text
    assert "25 primitives in a session: same graph, same time" in text
    assert text.endswith("Again:\n  rooflang compare …")


def test_why_not() -> None:
    text = show_comparison(told(row("a", verdict="not derivable", reason="the e-graph lacks it")), "")
    assert "not derivable: the e-graph lacks it" in text


def test_those_who_found_nothing() -> None:
    text = show_comparison(told(row("a", some=False, note="nothing fits"), bound_s=None, replayed=None), "")
    assert "nothing fits" in text
    assert "bound" not in text and "certificate" not in text


def test_long_names_are_told_by_their_end() -> None:
    text = show_comparison(told(row("python " + "x" * 80 + "/agent.py")), "")
    assert "x/agent.py" in text and "python" not in text
