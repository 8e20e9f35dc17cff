"""Weights gathered where they are used, found by plain `optimize` where HBM is short."""

from __future__ import annotations

from typing import Any

import pytest

from rooflang.errors import CapacityError
from rooflang.search.api import optimize
from rooflang.search.point import Result

#: Data-parallel attention and expert parallelism on one node: every rank has all weights of attention.
_DP_ATTENTION = {"hardware": "h200", "gpus": 8, "context": 65536, "pp": 1, "fix": ["dp=8,cp=1,ep=8"]}


def run(**more: Any) -> Result:
    return optimize("deepseek-v3", **{**_DP_ATTENTION, "batch": [96], **more})


@pytest.mark.parametrize("overlap", ["perfect", "none"])
def test_gathering_beats_dram_where_weights_are_repeated(overlap: str) -> None:
    (near,) = run(batch=[64], overlap=overlap).frontier
    assert "gathered" not in near.plan and near.bound_scope.endswith("leaves in HBM")
    without = ["insert_identity"]
    (gathered,) = run(overlap=overlap, disable_rules=without).frontier
    assert " weights gathered; " in gathered.plan
    assert gathered.bound_scope.endswith("weights as read or gathered")
    assert gathered.gap is not None and gathered.gap < 0.01
    (best,) = run(overlap=overlap).frontier
    assert best.sim.step_s <= gathered.sim.step_s * 1.003
    # Most of them came over PCIe before.
    assert gathered.sim.step_s < 3 * near.sim.step_s


def test_without_either_it_does_not_fit() -> None:
    with pytest.raises(CapacityError):
        run(disable_rules=["insert_identity", "merge_gather_broadcast"])
