"""Explanations as text and as JSON: what is told for which overlap, and that the JSON has all of it."""

from __future__ import annotations

from dataclasses import replace

from rooflang.report.explanation import explanation_json, show_explanation
from rooflang.sim.explain import Explanation, PathStep, Share, WhatIf

from .test_plans import SIM

OPERATORS = tuple(Share(name=f"operator_{n}", seconds=1e-3, share=1 / 12) for n in range(12))
FOUND = Explanation(
    result=replace(SIM, overlap="none", step_s=12e-3),
    path=(
        PathStep(
            op=0,
            name="layers.0.up",
            block="layers.0",
            group="experts",
            bound="memory",
            start_s=0.0,
            end_s=12e-3,
            alone_s=12e-3,
        ),
    ),
    by_group=(Share(name="experts", seconds=12e-3, share=1.0),),
    by_operator=OPERATORS,
    by_bound=(Share(name="memory", seconds=12e-3, share=1.0),),
    what_if=(
        WhatIf(change="HBM bandwidth", factor=1.1, step_s=11e-3, gain=1 / 11),
        WhatIf(change="fp8 peak", factor=1.1, step_s=12e-3, gain=1e-5),
    ),
)


def test_what_would_help_is_told_and_what_would_not_is_a_dash() -> None:
    lines = [line.split() for line in show_explanation(FOUND).splitlines()]
    assert ["HBM", "bandwidth", "10%", "better", "11", "ms", "+9.1%"] in lines
    assert ["fp8", "peak", "10%", "better", "12", "ms", "–"] in lines


def test_the_ten_longest_operators_are_told_and_all_are_in_the_json() -> None:
    assert show_explanation(FOUND).count("operator_") == 10
    data = explanation_json(FOUND)
    assert len(data["by_operator"]) == 12
    assert data["path"][0]["end_s"] == data["path_s"] == 12e-3
    assert data["what_if"][0] == {"change": "HBM bandwidth", "factor": 1.1, "step_s": 11e-3, "gain": 1 / 11}


def test_only_perfect_overlap_hides_a_part_of_the_path() -> None:
    assert "hides part of it" not in show_explanation(FOUND)
    perfect = replace(FOUND, result=replace(FOUND.result, overlap="perfect", step_s=7e-3))
    assert "perfect overlap hides part of it, 7 ms remain" in " ".join(show_explanation(perfect).split())


def test_groups_on_the_path_are_told_where_they_are_not_all_groups() -> None:
    assert "on the path" not in show_explanation(FOUND)
    both = replace(FOUND, result=replace(FOUND.result, overlap="two-batch"))
    assert "operators on the path" in show_explanation(both)
