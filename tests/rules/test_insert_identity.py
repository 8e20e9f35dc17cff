"""insert_identity: resident tensors may rest in other tiers, bit for bit."""

from __future__ import annotations

import pytest

from rooflang.ir import Role, Tensor
from rooflang.rules import rule
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated

RULE = rule("insert_identity")


def tensor(role: Role) -> Tensor:
    return Tensor(name="t", dims=("batch",), dtype="fp8", role=role)


@pytest.mark.parametrize("role", list(Role))
def test_only_what_rests_between_steps_is_taken(role: Role) -> None:
    verdict = RULE.check(tensor(role), "dram")
    assert isinstance(verdict, Ok if role in (Role.WEIGHT, Role.KV_CACHE, Role.STATE) else Refusal)


def test_lossy_casts_and_unknown_tiers_are_refused() -> None:
    lossy, nowhere = RULE.check(tensor(Role.WEIGHT), "dram", dtype="fp4"), RULE.check(tensor(Role.WEIGHT), "tape")
    assert isinstance(lossy, Refusal)
    assert isinstance(nowhere, Refusal)
    assert (lossy.code, nowhere.code) == ("lossy", "no-such-tier")
    assert isinstance(RULE.check(tensor(Role.WEIGHT), "nvme", dtype="fp8"), Ok)


def test_leaves_are_held_in_every_tier_and_inputs_in_hbm() -> None:
    held = {(hold.leaf, hold.tier) for hold in saturated(decode_step()).holds}
    assert held == {("cache", tier) for tier in ("hbm", "dram", "nvme")} | {("q", "hbm"), ("entry", "hbm")}


def test_a_layout_is_held_in_each_tier_alike() -> None:
    holds = saturated(mlp(), 2).holds
    layouts = {tier: {(h.leaf, h.spec) for h in holds if h.tier == tier and h.leaf != "x"} for tier in ("hbm", "nvme")}
    assert layouts["hbm"] == layouts["nvme"] != set()


def test_without_it_leaves_stay_in_hbm() -> None:
    assert set(enodes_lost(mlp(), "insert_identity")) == {"Move", "Hold"}
    assert {hold.tier for hold in saturated(mlp(), without="insert_identity").holds} == {"hbm"}
