"""The hash of a result's inputs tells everything apart that changes the result."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.errors import RooflangError
from rooflang.search.inputs import hashed_inputs, stated_assumptions
from rooflang.search.problem import Problem

from .toys import perceptron


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


@pytest.mark.parametrize(
    "changes",
    [
        {"draft_tokens": 1, "accepted_tokens": 1.8},
        {"expert_zipf": 0.5},
        {"expert_histogram": (1.0, 2.0) * 128},
        {"switch_reduction": True},
    ],
)
def test_assumptions_can_be_read_back_from_the_inputs(changes: dict[str, object]) -> None:
    for base in (PHYSICAL, PAPER):
        taken = replace(base, **changes)  # type: ignore[arg-type]
        told = inputs(taken)
        assert stated_assumptions(json.loads(json.dumps(told))) == taken
        assert told["hash"] != inputs(base)["hash"]


def test_every_field_of_a_profile_is_in_the_hash() -> None:
    """On a graph of its own, since most fields change what a model's graph is."""
    other: dict[str, object] = {
        **{name: theirs for name, (_, theirs) in PHYSICAL.differs_from(PAPER).items()},
        "routed_dtype": "fp8_block",
        "switch_reduction": True,
        "expert_zipf": 1.0,
        "expert_histogram": (1.0,) * 8,
        "image_tokens": 7,
    }
    graph, seen = perceptron(), set()
    for name, value in other.items():
        changed = replace(PHYSICAL, **{name: value})  # type: ignore[arg-type]
        seen.add(hashed_inputs(Problem.of(graph, hardware="b300", gpus=8, assumptions=changed))["hash"])
    assert len(seen) == len(other)
    assert set(other) | {"name", "draft_tokens", "accepted_tokens", "images"} == {f.name for f in fields(Assumptions)}


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"assumptions": 3}, "assumptions is 3"),
        ({"assumptions": "physical", "changed_assumptions": [1]}, "assumptions is 'physical'"),
        ({"assumptions": "physicl"}, "did you mean physical"),
        ({"assumptions": "physical", "changed_assumptions": {"kv_apend": False}}, "did you mean kv_append"),
        ({"assumptions": "physical", "changed_assumptions": {"kv_append": 7}}, "Expected `bool`"),
        ({"assumptions": "physical", "changed_assumptions": {"draft_tokens": -1}}, "whole number, 0 or more"),
    ],
)
def test_what_are_no_assumptions_is_refused(told: dict[str, object], says: str) -> None:
    with pytest.raises(RooflangError) as caught:
        stated_assumptions(told)
    assert says in str(caught.value)
