"""merge_reduce_scatter: what is partial and wanted cut is reduce-scattered, where its states allow."""

from __future__ import annotations

from rooflang.ir import Graph, GraphBuilder, Tensor
from rooflang.rules import rule
from rooflang.rules.examples import mlp
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated

RULE = rule("merge_reduce_scatter")
HIDDEN = Tensor(name="h", dims=("batch", "hidden"), dtype="bf16")


def attention_then_product() -> Graph:
    """Attention, partial by log-sum-exp along the context, into a product over its width."""
    g = GraphBuilder("attention", batch=8, head=4, width=16, context=64, hidden=32)
    q = g.input("q", "batch head width")
    cache = g.cache("cache", "batch context width")
    out = g.op("attend", "attention", [q, cache], "batch head width", parts=("window",))
    return g.build(g.op("y", "matmul", [out, g.weight("w", "head width hidden")], "batch hidden"))


def test_partial_values_are_scattered_and_cut_ones_are_not() -> None:
    assert isinstance(RULE.check(HIDDEN, ("P",), ("batch",)), Ok)
    refused = RULE.check(HIDDEN, ("hidden",), ("batch",))
    assert isinstance(refused, Refusal)
    assert refused.code == "not-partial"


def test_states_other_than_sums_keep_their_rows() -> None:
    """The product may read `attend` cut along width, but log-sum-exp states are scattered by batch or head only."""
    block = saturated(attention_then_product())
    scattered = {t.after[0] for t in block.transfers if t.tensor == "attend" and t.collective == "reduce_scatter"}
    assert scattered == {"batch", "head"}
    assert any(mode.operands[0] == ("width",) for mode in block.modes if mode.op.name == "y")
    refused = RULE.check(attention_then_product().tensors["attend"], ("P",), ("width",), spread=("batch", "head"))
    assert isinstance(refused, Refusal)
    assert refused.code == "whole-rows"


def test_sums_are_scattered_along_any_dim() -> None:
    scattered = {(t.tensor, *t.after) for t in saturated(mlp()).transfers if t.collective == "reduce_scatter"}
    assert scattered == {("up", "batch"), ("up", "ffn"), ("down", "batch"), ("down", "hidden")}


def test_without_it_nothing_is_reduce_scattered() -> None:
    assert enodes_lost(mlp(), "merge_reduce_scatter")["ReduceScatter"] > 0
    left = saturated(mlp(), without="merge_reduce_scatter").transfers
    assert left
    assert "reduce_scatter" not in {t.collective for t in left}
