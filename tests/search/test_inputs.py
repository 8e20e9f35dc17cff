"""The hash of a result's inputs tells everything apart that changes the result."""

from __future__ import annotations

from dataclasses import replace

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.search.inputs import hashed_inputs
from rooflang.search.problem import Problem


def inputs(assumptions: Assumptions, **choices: object) -> dict[str, object]:
    problem = Problem.of("deepseek-v4-flash", hardware="b300", gpus=8, context=65536, assumptions=assumptions)
    return hashed_inputs(problem, **choices)


def test_the_same_inputs_have_the_same_hash() -> None:
    assert inputs(PHYSICAL, pp=1) == inputs(PHYSICAL, pp=1)


def test_profiles_and_choices_tell_apart() -> None:
    hashes = {inputs(PHYSICAL, pp=1)["hash"], inputs(PHYSICAL, pp=2)["hash"], inputs(PAPER, pp=1)["hash"]}
    assert len(hashes) == 3


def test_a_changed_profile_of_the_same_name_tells_apart() -> None:
    changed = inputs(replace(PHYSICAL, switch_reduction=True))
    assert changed["hash"] != inputs(PHYSICAL)["hash"]
    assert changed["changed_assumptions"] == {"switch_reduction": True}
    assert "changed_assumptions" not in inputs(PHYSICAL)
