"""merge_reduce_broadcast: what is partial and wanted whole is all-reduced."""

from __future__ import annotations

from rooflang.ir import Tensor
from rooflang.rules import rule
from rooflang.rules.examples import mlp
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated

RULE = rule("merge_reduce_broadcast")
HIDDEN = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")


def test_partial_values_are_reduced_and_cut_ones_are_not() -> None:
    assert isinstance(RULE.check(HIDDEN, ("P",), ("R",)), Ok)
    refused = RULE.check(HIDDEN, ("hidden",), ("R",))
    assert isinstance(refused, Refusal)
    assert refused.code == "not-partial"


def test_only_tensors_that_can_be_partial_are_reduced() -> None:
    """A row of the signature makes them: products over a cut dim. A norm's output is never partial."""
    reduced = {t.tensor for t in saturated(mlp()).transfers if t.collective == "all_reduce"}
    assert reduced == {"up", "down"}


def test_without_it_nothing_is_all_reduced() -> None:
    assert enodes_lost(mlp(), "merge_reduce_broadcast")["AllReduce"] > 0
    left = saturated(mlp(), without="merge_reduce_broadcast").transfers
    assert left
    assert "all_reduce" not in {t.collective for t in left}
