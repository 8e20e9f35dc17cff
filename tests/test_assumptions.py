"""What can be taken for granted, and what cannot."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.errors import ValueRangeError


@pytest.mark.parametrize("profile", [PAPER, PHYSICAL], ids=["paper", "physical"])
def test_no_profile_has_extensions(profile: Any) -> None:
    assert not profile.skewed
    assert (profile.draft_tokens, profile.accepted_tokens, profile.images) == (0, 1.0, 0)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"draft_tokens": -1}, "--draft-tokens"),
        ({"draft_tokens": 1.0}, "--draft-tokens"),
        ({"draft_tokens": True}, "--draft-tokens"),
        ({"accepted_tokens": 1.5}, "--accepted-tokens"),
        ({"draft_tokens": 2, "accepted_tokens": 3.01}, "--accepted-tokens"),
        ({"draft_tokens": 2, "accepted_tokens": 0.99}, "--accepted-tokens"),
        ({"draft_tokens": 2, "accepted_tokens": float("nan")}, "--accepted-tokens"),
        ({"draft_tokens": 2, "accepted_tokens": "2"}, "--accepted-tokens"),
        ({"expert_zipf": -0.1}, "--expert-zipf"),
        ({"expert_zipf": float("inf")}, "--expert-zipf"),
        ({"expert_histogram": (1.0, -1.0)}, "--expert-histogram"),
        ({"expert_histogram": (0.0, 0.0)}, "--expert-histogram"),
        ({"expert_histogram": [1.0, 2.0]}, "--expert-histogram"),
        ({"expert_histogram": (1.0, 2.0), "expert_zipf": 1.0}, "--expert-zipf, --expert-histogram"),
        ({"images": -1}, "--images"),
        ({"image_tokens": 0}, "--image-tokens"),
    ],
)
def test_what_is_not_possible_is_refused(changes: dict[str, Any], where: str) -> None:
    with pytest.raises(ValueRangeError) as caught:
        replace(PHYSICAL, **changes)
    assert caught.value.where == where


def test_as_many_tokens_as_are_drafted_and_one_more_can_be_gained() -> None:
    assert replace(PHYSICAL, draft_tokens=3, accepted_tokens=4).accepted_tokens == 4
    assert replace(PHYSICAL, draft_tokens=3, accepted_tokens=1).accepted_tokens == 1


def test_every_field_is_explained() -> None:
    page = (Path(__file__).parents[1] / "docs" / "extensions.md").read_text(encoding="utf-8")
    assert not [field.name for field in fields(PHYSICAL) if field.name != "name" and f"`{field.name}" not in page]
    for name, (physical, paper) in PHYSICAL.differs_from(PAPER).items():
        words = [{True: "on", False: "off"}.get(value, f"`{value}`") for value in (physical, paper)]  # type: ignore[call-overload]
        assert f"| `{name}` | {words[0]} | {words[1]} |" in page or name in ("kv_append", "hyper_connections")
