"""Searches with drafts, skewed experts and images: plans are valid, bounds hold, numbers follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.models import Model, load
from rooflang.search.api import optimize, simulate
from rooflang.search.effort import GAP
from rooflang.search.point import Result

from .toys import small_flash

DRAFTS: dict[str, Any] = {"draft_tokens": 2, "accepted_tokens": 2.2}


def small_glm() -> Model:
    """GLM-5.3 with its first four layers."""
    config: Any = load("glm-5.3").config
    return Model(name="small glm", config=msgspec.structs.replace(config, num_hidden_layers=4))


def small_kimi() -> Model:
    """Kimi K3 with its first four layers and as many of its vision encoder's."""
    config: Any = load("kimi-k3").config
    text = msgspec.structs.replace(config.text_config, num_hidden_layers=4)
    vision = msgspec.structs.replace(config.vision_config, vt_num_hidden_layers=4)
    return Model(name="small kimi", config=msgspec.structs.replace(config, text_config=text, vision_config=vision))


def searched(model: Model, assumptions: Assumptions, **changes: Any) -> Result:
    given: dict[str, Any] = {"hardware": "b300", "gpus": 8, "stage": "decode", "context": 65536, "batch": [64], "pp": 1}
    found = optimize(model, assumptions=assumptions, **{**given, **changes})
    assert found.stopped_by == "complete"
    for point in found.points:
        assert point.bound_s is not None and point.gap is not None
        assert point.bound_s <= point.sim.step_s * (1 + 1e-9)
        assert point.gap <= 2 * GAP
    return found


@pytest.mark.parametrize("base", [PAPER, pytest.param(PHYSICAL, marks=pytest.mark.slow)], ids=["paper", "physical"])
def test_drafts_gain_what_is_accepted(base: Assumptions) -> None:
    (plain,) = searched(small_flash(), base).points
    (point,) = searched(small_flash(), replace(base, **DRAFTS)).points
    assert point.sim.tok_s_user == pytest.approx(2.2 / point.sim.step_s)
    assert point.sim.step_s > plain.sim.step_s
    (half,) = searched(small_flash(), replace(base, draft_tokens=2, accepted_tokens=1.1)).points
    assert half.sim.step_s == point.sim.step_s
    assert half.sim.tok_s_gpu == pytest.approx(point.sim.tok_s_gpu / 2)


@pytest.mark.slow
def test_drafts_of_a_model_that_shares_its_choice() -> None:
    searched(small_glm(), replace(PHYSICAL, **DRAFTS))


def test_drafts_through_a_pipeline() -> None:
    """The last stage drafts; it holds the embedding, too."""
    searched(small_flash(), replace(PHYSICAL, **DRAFTS), pp=2)


@pytest.mark.slow
def test_skewed_experts_in_a_prefill_are_worth_another_plan() -> None:
    """Tokens enough to read all experts: the busiest rank is late, whatever the plan; a grid plan is later."""
    given: dict[str, Any] = {"stage": "prefill", "context": 8192, "batch": [8]}
    skewed = replace(PHYSICAL, expert_zipf=1.0)
    (even,) = searched(small_flash(), PHYSICAL, **given).points
    (point,) = searched(small_flash(), skewed, **given).points
    assert point.sim.step_s > even.sim.step_s
    same: dict[str, Any] = {"hardware": "b300", "gpus": 8, "stage": "prefill", "context": 8192, "batch": 8, "dp": 8}
    grid = [simulate(small_flash(), assumptions=a, **same).sim for a in (PHYSICAL, skewed)]
    assert grid[1].groups_s["experts"] > 1.5 * grid[0].groups_s["experts"]
    assert point.sim.step_s < grid[1].step_s


@pytest.mark.slow
def test_images_cost_their_encoder() -> None:
    given: dict[str, Any] = {"stage": "prefill", "context": 8192, "batch": [8]}
    (text,) = searched(small_kimi(), PHYSICAL, **given).points
    (point,) = searched(small_kimi(), replace(PHYSICAL, images=4), **given).points
    assert point.sim.groups_s["vision"] > 0
    assert point.sim.step_s - text.sim.step_s == pytest.approx(point.sim.groups_s["vision"], rel=0.2)


def test_every_rank_of_its_own_is_as_late_as_one_of_each_class() -> None:
    taken = replace(PHYSICAL, expert_zipf=0.7, **DRAFTS)
    given: dict[str, Any] = {
        "hardware": "b300",
        "gpus": 8,
        "context": 8192,
        "batch": 16,
        "dp": 4,
        "cp": 2,
        "assumptions": taken,
    }
    one, each = (simulate(small_flash(), explicit=explicit, **given) for explicit in (False, True))
    assert one.sim.step_s == each.sim.step_s


def test_all_overlaps() -> None:
    taken = replace(PHYSICAL, expert_zipf=0.7, **DRAFTS)
    given: dict[str, Any] = {"hardware": "b300", "gpus": 8, "context": 8192, "batch": 16, "dp": 8, "assumptions": taken}
    steps = [
        simulate(small_flash(), overlap=overlap, **given).sim.step_s for overlap in ("none", "two-batch", "perfect")
    ]
    assert steps[2] <= steps[0]
    assert steps[1] >= steps[2] * (1 - 1e-9)
