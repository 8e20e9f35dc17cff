"""Graphs of every attention and feed-forward kind: operators, caches, operations, and what each field moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rooflang.assumptions import PHYSICAL
from rooflang.errors import ValueRangeError
from rooflang.ir import Graph, Role
from rooflang.models import Model, Workload, load
from rooflang.models.hf import Decoder, read
from rooflang.models.measure import kv_read_bytes, met, weight_bytes

Build = Callable[..., Graph]
Flops = Callable[[Graph], dict[str, float]]

#: One of every family.
NAMES = (
    "llama-3.1-8b",
    "llama-4-scout",
    "mixtral-8x7b",
    "qwen2.5-7b",
    "qwen2-57b-a14b",
    "qwen3-30b-a3b",
    "qwen3-next-80b-a3b",
    "qwen3.5-27b",
    "gemma-2-9b",
    "gemma-3-12b",
    "gpt-oss-20b",
    "deepseek-v2-lite",
    "deepseek-v3",
    "deepseek-v3.2",
    "glm-4-32b",
    "glm-4.5",
    "kimi-linear-48b-a3b",
    "minimax-m1",
    "minimax-m2.5",
    "phi-3.5-moe",
    "phi-4-mini",
)

PRODUCTS = {"matmul", "gated_matmul", "absorb_query", "expand_latent"}
OTHERS = {"bias", "short_conv", "delta_scan", "delta_final"}


def kinds(graph: Graph, block: str) -> list[str]:
    return [op.kind for op in graph.ops if op.block == block]


@pytest.mark.parametrize("stage", ["decode", "prefill"])
@pytest.mark.parametrize("name", NAMES)
def test_graphs_are_well_formed(graph: Build, name: str, stage: str) -> None:
    found = graph(name, stage)
    used = {label for op in found.ops for label in op.labels}
    assert used == set(found.sizes)
    assert ("seq" in used) == (stage == "prefill")
    left = [found.tensors[n] for n in found.outputs[1:]]
    assert bool(left) == (stage == "prefill")
    # What a prompt leaves behind are the caches and states that a decode step begins with.
    kept = {(t.dims, t.dtype) for t in graph(name).leaves if t.role in (Role.KV_CACHE, Role.STATE)}
    if stage == "prefill":
        assert {(t.dims, t.dtype) for t in left} == kept


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_takes_two_operations_per_weight_and_token(graph: Build, flops: Flops, name: str) -> None:
    """Of the layers, beside attention itself. Weights that are no matrix are norms, biases, convolutions, decays."""
    found = graph(name, "prefill", context=64, batch=1)
    made = [op for op in found.ops if op.kind in PRODUCTS and op.block.startswith("layers")]
    expected = biases = 0.0
    for weight, share in met(found):
        (op, index), *_ = found.consumers[weight.name]
        if op in made and index == 1:
            expected += 2 * 64 * share * weight.elements(found.sizes)
        elif op in made:
            biases += 64 * share * weight.elements(found.sizes)
        else:
            assert len(weight.dims) == 1 or op.kind in OTHERS or op.block in ("embed", "head"), weight.name
    assert sum(flops(replace(found, ops=tuple(made))).values()) == pytest.approx(expected + biases, rel=1e-9)


def test_operators_of_a_llama_layer(graph: Build) -> None:
    assert kinds(graph("llama-3.1-8b"), "layers.0") == [
        *("rms_norm", "matmul", "rope", "matmul", "rope", "matmul"),
        *("kv_append", "kv_append", "grouped_attention", "matmul", "add"),
        *("rms_norm", "gated_matmul", "matmul", "add"),
    ]


def test_sinks_windows_and_biases_of_gpt_oss(graph: Build) -> None:
    found = graph("gpt-oss-20b", "prefill")
    near, far = (found.op_by_name[f"layers.{i}.attention"] for i in range(2))
    assert (near.attr("window"), far.attr("window")) == (128, None)
    assert near.attr("sinks") and near.operands[3].dims == ("head",)
    assert found.op_by_name["layers.0.expert_up"].attr("function") == "swiglu_oai"
    assert [op.name for op in found.ops if op.kind == "bias" and op.block == "layers.0"] == [
        f"layers.0.{name}" for name in ("q_bias", "k_bias", "v_bias", "o_bias", "logits_bias", "expert_bias")
    ]
    decode = graph("gpt-oss-20b")
    assert decode.tensors["layers.0.keys_cache"].dims == ("batch", "window128", "kv", "head_dim")
    assert decode.tensors["layers.1.keys_cache"].dims == ("batch", "ctx", "kv", "head_dim")


def test_gemma_2_squashes_scores_and_logits_and_norms_on_both_sides(graph: Build) -> None:
    found = graph("gemma-2-9b")
    assert found.op_by_name["layers.0.attention"].attr("soft_cap") == 50
    assert found.op_by_name["head.logits_cap"].attr("cap") == 30
    assert found.op_by_name["embed.scaled"].attr("factor") == pytest.approx(3584**0.5)
    assert found.op_by_name["layers.0.dense_up"].attr("function") == "gelu"
    assert kinds(found, "layers.0").count("rms_norm") == 4
    assert found.op_by_name["head.logits"].operands[1].name == "embed.table"


def test_norms_of_queries_and_keys(graph: Build) -> None:
    per_head = graph("qwen3-30b-a3b").op_by_name["layers.0.q_norm"]
    assert per_head.operands[1].dims == ("head_dim",)
    over_all = graph("minimax-m2.5")
    assert over_all.op_by_name["layers.0.q_norm"].operands[1].dims == ("heads_wide",)
    assert over_all.op_by_name["layers.0.q_heads"].kind == "view"
    assert len(graph("llama-4-scout").op_by_name["layers.0.q_norm"].operands) == 1


def test_llama_4_has_chunks_and_layers_without_rotation(graph: Build) -> None:
    found = graph("llama-4-scout", "prefill", context=16384)
    assert found.op_by_name["layers.0.attention"].attr("chunk") == 8192
    assert "rope" in kinds(found, "layers.0")
    assert found.op_by_name["layers.1.attention"].attr("chunk") is None
    assert "rope" not in kinds(found, "layers.1")


def test_a_part_of_a_head_may_be_rotated(graph: Build) -> None:
    assert graph("phi-4-mini").op_by_name["layers.0.q_rope"].attr("fraction") == 0.75
    assert graph("glm-4-32b").op_by_name["layers.0.k_rope"].attr("fraction") == 0.5


def test_latent_attention_is_absorbed_in_decode_and_expanded_in_prefill(graph: Build) -> None:
    decode, prefill = (graph("deepseek-v3", stage) for stage in ("decode", "prefill"))
    assert decode.op_by_name["layers.0.attention"].kind == "latent_attention"
    attends = prefill.op_by_name["layers.0.attention"]
    assert attends.kind == "grouped_attention"
    assert [prefill.sizes[d] for d in attends.operands[1].dims[2:]] == [128, 192]
    assert [prefill.sizes[d] for d in attends.operands[2].dims[2:]] == [128, 128]
    assert "q_lora" not in graph("deepseek-v2-lite").sizes


def test_chosen_entries_are_attended_as_they_are_in_both_stages(graph: Build) -> None:
    for stage in ("decode", "prefill"):
        attends = graph("deepseek-v3.2", stage, context=8192).op_by_name["layers.0.attention"]
        assert (attends.kind, attends.attr("select")) == ("latent_attention", 2048)
    assert graph("deepseek-v3.2", context=100).op_by_name["layers.0.attention"].attr("select") == 100


def test_routers(graph: Build) -> None:
    route = graph("deepseek-v3").op_by_name["layers.1.route"]
    assert (route.attr("top_k"), route.attr("scores"), len(route.operands)) == (8, "sigmoid", 2)
    route = graph("mixtral-8x7b").op_by_name["layers.0.route"]
    assert (route.attr("top_k"), route.attr("scores"), len(route.operands)) == (2, None, 1)


def test_a_shared_expert_may_be_weighed_by_a_gate_for_each_token(graph: Build) -> None:
    found = graph("qwen3-next-80b-a3b")
    assert found.op_by_name["layers.0.shared_gate"].output.dims == ("batch",)
    assert "layers.1.shared_gate" not in graph("deepseek-v3").op_by_name


def test_gated_delta_rule_and_kimi_delta_attention(graph: Build) -> None:
    net = graph("qwen3-next-80b-a3b").op_by_name["layers.0.delta_update"]
    assert net.operands[2].dims == ("batch", "delta_head")
    assert net.attr("gate") == "softplus"
    kimi = graph("kimi-linear-48b-a3b").op_by_name["layers.0.delta_update"]
    assert kimi.operands[2].dims == ("batch", "delta_head", "delta_key")
    assert "repeat" not in kinds(graph("kimi-linear-48b-a3b"), "layers.0")


def test_states_are_kept_as_the_file_says(graph: Build) -> None:
    assert graph("qwen3.5-27b").tensors["layers.0.state"].dtype == "fp32"
    assert graph("qwen3-next-80b-a3b").tensors["layers.0.state"].dtype == "bf16"


def test_layer_norms_and_a_bias_of_the_head(graph: Build) -> None:
    found = graph("phi-3.5-moe")
    assert found.op_by_name["layers.0.attn_norm"].kind == found.op_by_name["head.norm"].kind == "layer_norm"
    assert found.op_by_name["head.logits_bias"].kind == "bias"


def test_a_window_bounds_what_a_decode_step_reads(graph: Build) -> None:
    layers = [graph("gpt-oss-20b", context=context) for context in (4096, 8192)]
    grown = kv_read_bytes(layers[1], PHYSICAL) - kv_read_bytes(layers[0], PHYSICAL)
    assert grown == 4096 * 2 * 8 * 64 * 2


@pytest.mark.parametrize(
    ("field", "value", "grows"),
    [
        ("num_hidden_layers", 3, 2 * (2 * 256 * 256 + 2 * 256 * 64 + 3 * 256 * 512 + 2 * 256)),
        ("intermediate_size", 513, 2 * 2 * 3 * 256),
        ("vocab_size", 1025, 2 * 2 * 256),
        ("num_key_value_heads", 4, 2 * 2 * 2 * 256 * 64),
        ("tie_word_embeddings", True, -2 * 1024 * 256),
        ("head_dim", 64, 2 * 2 * (2 * 256 * 256 + 2 * 256 * 64)),
    ],
)
def test_a_field_moves_the_bytes_that_it_should(llama: dict[str, Any], field: str, value: Any, grows: int) -> None:
    def size(fields: dict[str, Any]) -> float:
        model = Model(name="small", config=read(fields, "config.json"))
        return weight_bytes(model.build(Workload(stage="decode", context=16, batch=1)))

    assert size({**llama, field: value}) - size(llama) == grows


def test_drafts_go_through_the_layers_for_multi_token_prediction(short: Callable[[str], Model]) -> None:
    drafts = replace(PHYSICAL, draft_tokens=2, accepted_tokens=1.5)
    for name in ("deepseek-v3", "glm-4.5"):
        model = short(name)
        assert isinstance(model.config, Decoder) and model.config.draft_layers == 1
        found = model.build(Workload(stage="decode", context=64, batch=2), drafts)
        assert found.sizes["draft"] == 3
        assert {op.block for op in found.ops} == {"embed", "layers.0", "layers.1", "head", "draft"}


def test_what_is_stateful_drafts_nothing() -> None:
    drafts = replace(PHYSICAL, draft_tokens=1)
    with pytest.raises(ValueRangeError, match="has no layers that draft"):
        load("qwen3.5-27b").build(Workload(stage="decode", context=64, batch=2), drafts)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_family_is_optimized_and_its_plans_validated(short: Callable[[str], Model], name: str) -> None:
    """Certificates come from an exact evaluation against the unsharded graph."""
    from rooflang import optimize

    for stage in ("decode", "prefill"):
        result = optimize(short(name), hardware="h200", gpus=4, stage=stage, context=4096, batch=(8,), pp=1)
        assert result.stopped_by == "complete"
        assert all(point.certificate["evaluated"]["verdict"] == "equal" for point in result.frontier)
