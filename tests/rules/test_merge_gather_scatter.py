"""merge_gather_scatter: a cut along one dim becomes a cut along another by an all-to-all."""

from __future__ import annotations

import pytest

from rooflang.ir import Tensor
from rooflang.rules import rule
from rooflang.rules.examples import mlp
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated

RULE = rule("merge_gather_scatter")
HIDDEN = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")


def test_the_verdict_carries_the_transfer() -> None:
    taken = RULE.check(HIDDEN, ("batch", "batch"), ("hidden", "hidden"))
    assert isinstance(taken, Ok)
    assert (taken.result.collective, taken.result.axes) == ("all_to_all", (0, 1))


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [("batch", "batch", "not-one-step"), ("batch", "R", "other-law"), ("batch", "P", "no-law")],
)
def test_refusals(before: str, after: str, code: str) -> None:
    refused = RULE.check(HIDDEN, (before,), (after,))
    assert isinstance(refused, Refusal)
    assert refused.code == code


def test_without_it_nothing_is_exchanged() -> None:
    assert enodes_lost(mlp(), "merge_gather_scatter")["AllToAll"] > 0
    exchanges = [t for t in saturated(mlp()).transfers if t.collective == "all_to_all"]
    assert {(t.tensor, *t.before, *t.after) for t in exchanges} >= {("up", "batch", "ffn"), ("up", "ffn", "batch")}
    left = saturated(mlp(), without="merge_gather_scatter").transfers
    assert left
    assert "all_to_all" not in {t.collective for t in left}
