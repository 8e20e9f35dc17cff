"""Decode steps with drafts: what is checked, what the MTP layers cost, what stays in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.errors import ValueRangeError
from rooflang.ir import Graph, Role
from rooflang.ir.blocks import split_blocks
from rooflang.ir.op import op_kind
from rooflang.models import Workload, load, measure

Flops = Callable[[Graph], dict[str, float]]

DRAFTING = ["deepseek-v4-flash", "deepseek-v4-pro", "glm-5.3"]
PROFILES = pytest.mark.parametrize("base", [PAPER, PHYSICAL], ids=["paper", "physical"])


def drafting(tokens: int, base: Assumptions = PHYSICAL) -> Assumptions:
    return replace(base, draft_tokens=tokens, accepted_tokens=1.0)


def decode(model: str, assumptions: Assumptions, context: int = 65536) -> Graph:
    return load(model).build(Workload(stage="decode", context=context, batch=8), assumptions)


def without(graph: Graph, *blocks: str) -> Graph:
    return replace(graph, ops=tuple(op for op in graph.ops if op.block not in blocks))


@PROFILES
@pytest.mark.parametrize("model", DRAFTING)
def test_a_step_of_one_more_block(model: str, base: Assumptions) -> None:
    plain, graph = decode(model, base), decode(model, drafting(2, base))
    assert split_blocks(graph).sequence == (*split_blocks(plain).sequence, "draft")
    tokens = [graph.tensors[name] for name in graph.outputs if graph.tensors[name].dtype == "int32"]
    assert [t.dims for t in tokens] == [("batch", "draft"), ("batch",), ("batch",)]
    assert graph.sizes["draft"] == 3


@PROFILES
@pytest.mark.parametrize("model", DRAFTING)
def test_the_check_runs_all_tokens_and_reads_all_weights_once(model: str, base: Assumptions, flops: Flops) -> None:
    plain, graph = decode(model, base), decode(model, drafting(2, base))
    before, after = flops(plain), flops(without(graph, "draft"))
    assert before.keys() == after.keys()
    for peak, amount in after.items():
        assert amount == pytest.approx(3 * before[peak])
    assert measure.weight_bytes(without(graph, "draft")) == measure.weight_bytes(plain)
    assert measure.kv_footprint_bytes(without(graph, "draft")) == measure.kv_footprint_bytes(plain)


def test_parameters_of_the_mtp_layer() -> None:
    """GLM-5.3: a layer with its own indexer, two square matrices, three norms; embedding and head are the model's."""
    hidden, expert = 6144, 3 * 6144 * 2048
    attention = hidden * 2048 + 2048 * 64 * 256 + hidden * 576 + 512 * 64 * 448 + 64 * 256 * hidden + 2048 + 512
    indexer = 2048 * 32 * 128 + hidden * 128 + 2 * 128 + hidden * 32
    joined = 2 * hidden * hidden + 2 * hidden
    layer = attention + indexer + 257 * expert + hidden * 256 + 2 * hidden + joined + hidden
    found = measure.parameters(decode("glm-5.3", drafting(1))) - measure.parameters(decode("glm-5.3", PHYSICAL))
    assert found == layer


@pytest.mark.parametrize("model", DRAFTING)
def test_a_layer_that_runs_again_has_its_weights_and_its_cache_once(model: str) -> None:
    once, thrice = decode(model, drafting(1)), decode(model, drafting(3))
    assert measure.weight_bytes(once) == measure.weight_bytes(thrice)
    assert measure.kv_footprint_bytes(once) == measure.kv_footprint_bytes(thrice)


def test_two_layers_have_weights_of_their_own(tmp_path: Any) -> None:
    import msgspec

    from rooflang.models.deepseek_v4 import Config, build

    config = load("deepseek-v4-flash").config
    assert isinstance(config, Config)
    both = msgspec.structs.replace(
        config, num_hidden_layers=2, num_nextn_predict_layers=2, compress_ratios=(0, 4, 0, 4)
    )
    graph = build("two", both, Workload(stage="decode", context=65536, batch=1), drafting(3))
    read = {run: graph.op_by_name[f"draft.run{run}.q_a"].operands[1].name for run in range(3)}
    assert read == {0: "draft.mtp0.wq_a", 1: "draft.mtp1.wq_a", 2: "draft.mtp1.wq_a"}
    assert "draft.run1.selection" in graph.op_by_name and "draft.run0.selection" not in graph.op_by_name


def test_the_entries_of_all_tokens_are_appended() -> None:
    graph = decode("deepseek-v4-pro", drafting(2))
    plain = graph.op_by_name["layers.2.window"]
    assert (plain.attr("rate"), plain.attr("positions")) == (3.0, "draft")
    pooled = graph.op_by_name["layers.2.context"]
    assert (pooled.attr("rate"), pooled.attr("positions")) == (3 / 4, None)
    kind = op_kind("kv_append")
    assert kind.write_fraction(plain, graph.sizes, graph.sizes) == 3 / 128
    again = graph.op_by_name["draft.run1.window"]
    assert [t.name for t in again.operands] == ["draft.run1.kv_norm", "draft.run0.window"]
    assert again.attr("rate") == 1.0


def test_the_paper_appends_nothing_and_leaves_the_entries() -> None:
    graph = decode("deepseek-v4-pro", drafting(1, PAPER))
    assert "draft.run0.kv_norm" in graph.outputs
    assert not [op for op in graph.ops if op.kind == "kv_append"]


def test_what_a_query_chooses_is_read_for_each_of_them() -> None:
    """Queries of a request choose entries of their own; what they all attend is read once."""
    graph = decode("deepseek-v4-pro", drafting(1))
    for name, share in (("layers.2.attention", 2 * 1024 / 16384), ("layers.3.attention", 1.0)):
        op = graph.op_by_name[name]
        assert op_kind(op.kind).read_fraction(op, 2, graph.sizes, graph.sizes, PHYSICAL) == share
    last = graph.op_by_name["layers.2.selection"]
    assert last.output.dims == ("batch", "draft", "chosen")


def test_glm_uses_the_choice_of_its_first_run_again() -> None:
    """`index_share_for_mtp_iteration`; without it every run has an indexer."""
    graph = decode("glm-5.3", drafting(3))
    assert [op.name for op in graph.ops if op.block == "draft" and op.kind == "index_select"] == [
        "draft.run0.selection"
    ]
    assert graph.op_by_name["draft.run2.attention"].operands[3].name == "draft.run1.last_choice"
    assert graph.tensors["draft.run1.last_choice"].dtype == "int32"


def test_embedding_and_head_are_those_of_the_model() -> None:
    graph = decode("deepseek-v4-flash", drafting(1))
    assert {op.block for op, _ in graph.consumers["embed.table"]} == {"embed", "draft"}
    assert {op.block for op, _ in graph.consumers["head.head_w"]} == {"head", "draft"}
    assert graph.tensors["draft.run0.head.token"].role is Role.OUTPUT


@pytest.mark.parametrize(
    ("model", "stage", "says"),
    [("kimi-k3", "decode", "no layers that draft tokens"), ("glm-5.3", "prefill", "a prefill step drafts no tokens")],
)
def test_who_cannot_draft_says_so(model: str, stage: Any, says: str) -> None:
    with pytest.raises(ValueRangeError, match=says) as caught:
        load(model).build(Workload(stage=stage, context=1024, batch=1), drafting(1))
    assert caught.value.where == "--draft-tokens"
