"""merge_gather_broadcast: what is cut and wanted whole is all-gathered."""

from __future__ import annotations

from rooflang.eqsat import enodes, saturate
from rooflang.ir import Tensor
from rooflang.ir.blocks import split_blocks
from rooflang.ir.tensor import Role
from rooflang.rules import rule
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated

RULE = rule("merge_gather_broadcast")
HIDDEN = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")


def test_cut_values_are_gathered_and_partial_ones_are_not() -> None:
    taken = RULE.check(HIDDEN, ("hidden", "P"), ("R", "P"))
    assert isinstance(taken, Ok)
    assert (taken.result.collective, taken.result.axes) == ("all_gather", (0,))
    refused = RULE.check(HIDDEN, ("P",), ("R",))
    assert isinstance(refused, Refusal)
    assert refused.code == "partial"


def test_caches_stay_where_they_are() -> None:
    cache = next(t for t in decode_step().leaves if t.name == "cache")
    refused = RULE.check(cache, ("context",), ("R",))
    assert isinstance(refused, Refusal)
    assert refused.code == "resident"
    assert not [t for t in saturated(decode_step(), 2).transfers if t.tensor in ("append", "cache")]


def test_without_it_nothing_is_gathered() -> None:
    assert enodes_lost(mlp(), "merge_gather_broadcast")["AllGather"] > 0
    gathers = [t for t in saturated(mlp(), 2).transfers if t.collective == "all_gather"]
    assert {len(t.axes) for t in gathers} == {1, 2}
    assert all(enodes(t)[0].startswith("(AllGather ") for t in gathers)
    left = saturated(mlp(), without="merge_gather_broadcast").transfers
    assert left
    assert "all_gather" not in {t.collective for t in left}


def test_weights_are_gathered_where_that_is_asked_for() -> None:
    weight = next(t for t in mlp().leaves if t.role is Role.WEIGHT)
    taken = RULE.check(weight, (weight.dims[0],), ("R",))
    assert isinstance(taken, Ok)
    leaves = {t.name for t in mlp().leaves}
    assert not [t for t in saturated(mlp(), 2).transfers if t.tensor in leaves]
    (kind,) = split_blocks(mlp()).kinds
    block = saturate(kind, 2, gathered=True)
    moved = [t for t in block.transfers if t.tensor in leaves]
    assert {t.collective for t in moved} == {"all_gather"}
    assert all((t.tensor, t.before, "hbm") in {(h.leaf, h.spec, h.tier) for h in block.holds} for t in moved)
    # Nothing else changes.
    assert set(block.modes) == set(saturated(mlp(), 2).modes)
    left = saturate(kind, 1, gathered=True, disabled=frozenset({"merge_gather_broadcast"}))
    assert not [t for t in left.transfers if t.tensor in leaves]
