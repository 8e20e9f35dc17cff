"""The whole graph: published totals, blocks, labels, and what each config field and each assumption moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.errors import ValueRangeError
from rooflang.ir import Graph
from rooflang.ir.blocks import split_blocks
from rooflang.models import Workload, load, measure
from rooflang.models.deepseek_v4.config import INDEXED_RATIO

GIB = 2**30
WINDOW, CSA, HCA = "window", "csa", "hca"

Build = Callable[..., Graph]
Flops = Callable[[Graph], dict[str, float]]


def full(model: str, stage: Any, assumptions: Assumptions, context: int = 65536) -> Graph:
    return load(f"deepseek-v4-{model}").build(Workload(stage=stage, context=context, batch=8), assumptions)


# RoofLang paper, Tables 7 and 8 (P/B times the batch) and the authors' published points (weights of the prefill graph).
@pytest.mark.parametrize(
    ("model", "decode_gib", "prefill_gib"),
    [("flash", "145.75493", "146.7237"), ("pro", "793.96800", "796.4563")],
)
def test_weight_bytes_of_the_paper(model: str, decode_gib: str, prefill_gib: str) -> None:
    assert f"{measure.weight_bytes(full(model, 'decode', PAPER)) / GIB:.5f}" == decode_gib
    assert f"{measure.weight_bytes(full(model, 'prefill', PAPER)) / GIB:.4f}" == prefill_gib


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize(
    ("model", "context", "footprint_gib", "read_gib"),
    [
        ("flash", 65536, "0.19208", "0.03314"),
        ("flash", 1048576, "3.03387", "0.41400"),
        ("pro", 65536, "0.27496", "0.05524"),
        ("pro", 1048576, "4.34357", "0.60822"),
    ],
)
def test_kv_bytes_of_the_paper(
    model: str, context: int, footprint_gib: str, read_gib: str, assumptions: Assumptions
) -> None:
    graph = full(model, "decode", assumptions, context)
    assert f"{measure.kv_footprint_bytes(graph) / GIB:.5f}" == footprint_gib
    assert f"{measure.kv_read_bytes(graph, assumptions) / GIB:.5f}" == read_gib


def kind_words(graph: Graph) -> list[str]:
    """The block kinds in program order, by what they hold."""
    words = []
    for kind in split_blocks(graph).kinds:
        if not kind.name.startswith("layers."):
            words.append(kind.name)
            continue
        labels = {label for op in kind.ops for label in op.labels}
        attention = CSA if "ctx4" in labels else HCA if "ctx128" in labels else WINDOW
        words.append(attention + (" hash" if any(op.kind == "hash_route" for op in kind.ops) else ""))
    return words


@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_block_kinds(stage: str) -> None:
    assert kind_words(full("flash", stage, PAPER)) == ["embed", WINDOW, CSA, HCA, "head"]
    assert kind_words(full("pro", stage, PAPER)) == ["embed", HCA, CSA, "head"]
    hashed = [f"{WINDOW} hash", f"{CSA} hash"]
    assert kind_words(full("flash", stage, PHYSICAL)) == ["embed", *hashed, HCA, CSA, "head"]
    assert kind_words(full("pro", stage, PHYSICAL)) == ["embed", f"{HCA} hash", f"{CSA} hash", HCA, CSA, "head"]


def test_layers_of_a_kind_are_counted() -> None:
    counts = split_blocks(full("pro", "decode", PAPER)).counts()
    assert counts == {"embed": 1, "layers.0": 31, "layers.2": 30, "head": 1}


def test_compressed_contexts_are_called_contexts() -> None:
    words = full("pro", "decode", PHYSICAL).words
    assert words["ctx4"] == words["ctx128"] == "context"


def test_what_a_step_leaves_behind() -> None:
    assert full("flash", "decode", PHYSICAL).outputs == ("head.token",)
    # No append in the paper's decode: the new entry of each layer is made and goes no further.
    assert full("flash", "decode", PAPER).outputs == ("head.token", *(f"layers.{i}.kv_norm" for i in range(43)))
    made = full("flash", "prefill", PHYSICAL).outputs[1:]
    assert len(made) == 43 + 41 + 21  # windows, compressed contexts, index keys


# -- context ------------------------------------------------------------------------------------------------------


def test_a_context_shorter_than_a_group_has_one_entry_and_a_part_of_the_window(small: Build) -> None:
    graph = small("decode", context=3)
    assert {k: graph.sizes[k] for k in ("window", "ctx4", "ctx128", "chosen")} == {
        "window": 3, "ctx4": 1, "ctx128": 1, "chosen": 1,
    }  # fmt: skip


def test_a_group_that_is_filling_up_has_an_entry(small: Build) -> None:
    sizes = small("decode", context=1025).sizes
    assert (sizes["ctx4"], sizes["ctx128"]) == (257, 9)


def test_a_prompt_has_to_fill_whole_groups(small: Build) -> None:
    with pytest.raises(ValueRangeError) as caught:
        small("prefill", context=1000)
    assert caught.value.where == "--context"
    assert caught.value.expected == "a multiple of 128 tokens"
    assert caught.value.hint == "896 or 1,024"
    with pytest.raises(ValueRangeError, match="of 4") as caught:
        small("prefill", context=3, compress_ratios=(4,) * 6)
    assert caught.value.hint == "4"
    assert small("prefill", context=3, compress_ratios=(0,) * 6).sizes["seq"] == 3


# -- FLOPs --------------------------------------------------------------------------------------------------------


def test_flops_of_a_decode_step_by_hand(flops: Flops) -> None:
    """Flash at 64K, per token: two FLOPs per weight met, attention and index scores beside them."""
    found = {peak: amount / 8 for peak, amount in flops(full("flash", "decode", PAPER)).items()}
    hidden, layers, keys = 4096, 43, 64 * 512
    low = hidden * 1024 + 1024 * keys + hidden * 512 + 8 * 1024 * hidden + 3 * hidden * 2048
    attended = 2 * 128 + 20 * (128 + 65536 // 128) + 21 * (128 + 512)
    assert found["fp8"] == 2 * layers * low + 4 * keys * attended
    scored = (2 * 64 * 128 + 3 * 64) * (65536 // 4) * 21
    assert found["fp4"] == pytest.approx(2 * layers * 6 * 3 * hidden * 2048 + scored)
    # Gains of norms are 4 FLOPs an element, adds 1, softmax 5 a logit, combine 2 a routed element, argmax 1 a logit.
    products = layers * (4096 * 8 * 1024 + hidden * 256) + hidden * 129280
    small_ones = layers * (4 * (2 * hidden + 1024 + 512) + 3 * hidden + 5 * 256 + 2 * 6 * hidden)
    assert found["bf16"] == pytest.approx(2 * products + small_ones + 4 * hidden + 129280)
    assert "fp32" not in found


def test_a_prompts_queries_see_half_of_what_grows(flops: Flops) -> None:
    """The ratio-128 context and the index are causal; the window and the chosen entries are counted whole."""
    context, heads, width = 65536, 128, 512
    graph = full("pro", "prefill", PAPER)
    attention = {op.block: flops(replace(graph, ops=(op,))) for op in graph.ops if op.kind == "attention"}
    per_query = {block: {k: v / (8 * context) for k, v in found.items()} for block, found in attention.items()}
    assert per_query["layers.0"] == pytest.approx({"fp8": 4 * heads * width * (128 + 512 / 2)})
    assert per_query["layers.2"] == pytest.approx(
        {"fp8": 4 * heads * width * (128 + 1024), "fp4": (2 * 64 * 128 + 3 * 64) * context / 4 / 2}
    )


def test_the_profiles_agree_on_attention(flops: Flops) -> None:
    """Index scores move to an operator of their own, what is done with them to FP32; their number stays."""
    for stage in ("decode", "prefill"):
        totals = []
        for assumptions in (PAPER, PHYSICAL):
            graph = full("flash", stage, assumptions)
            ops = tuple(op for op in graph.ops if op.kind in ("attention", "index_select"))
            totals.append(flops(replace(graph, ops=ops)))
        assert totals[0]["fp8"] == totals[1]["fp8"]
        assert sum(totals[0].values()) == pytest.approx(sum(totals[1].values()))


# -- what moves what ----------------------------------------------------------------------------------------------


def numbers(graph: Graph, flops: Flops) -> dict[str, float]:
    counted = flops(graph)
    return {
        "weights": measure.weight_bytes(graph),
        "active": measure.active_parameters(graph),
        "footprint": measure.kv_footprint_bytes(graph),
        "read": measure.kv_read_bytes(graph, PHYSICAL),
        "moved": sum(op.output.bytes(graph.sizes) for op in graph.ops if op.kind != "kv_append"),
        **{peak: counted[peak] for peak in ("fp4", "fp8", "bf16", "fp32")},
    }


@pytest.mark.parametrize(
    ("field", "value", "moves"),
    [
        ("vocab_size", 200_000, "weights active moved bf16"),
        ("hidden_size", 8192, "weights active moved fp4 fp8 bf16 fp32"),
        ("num_hidden_layers", 5, "weights active footprint read moved fp4 fp8 bf16 fp32"),
        ("num_attention_heads", 128, "weights active moved fp8 bf16"),
        ("head_dim", 256, "weights active footprint read moved fp8 bf16"),
        ("q_lora_rank", 2048, "weights active moved fp8 bf16"),
        ("o_groups", 16, "weights active moved fp8"),
        ("o_lora_rank", 512, "weights active moved fp8 bf16"),
        ("sliding_window", 256, "footprint read fp8"),
        ("compress_ratios", (0, 0, 4, 256, 4, 256), "footprint read fp8"),
        ("compress_ratios", (0, 0, 0, 0, 0, 0), "weights active footprint read moved fp4 fp8 bf16 fp32"),
        ("index_n_heads", 32, "weights active moved fp4 fp8 bf16 fp32"),
        ("index_head_dim", 64, "weights active footprint read moved fp4 fp8 bf16"),
        ("index_topk", 1024, "read moved fp8"),
        ("n_routed_experts", 512, "weights active moved bf16"),
        ("n_shared_experts", 2, "weights active moved fp8"),
        ("n_shared_experts", 0, "weights active moved fp8 bf16"),
        ("num_experts_per_tok", 8, "weights active moved fp4 bf16"),
        ("moe_intermediate_size", 1024, "weights active moved fp4 fp8"),
        ("num_hash_layers", 0, "weights"),
        ("hc_mult", 2, "weights active moved bf16 fp32"),
        ("expert_dtype", "fp8", "weights fp4 fp8"),
        ("expert_dtype", None, "weights fp4 fp8"),
        ("quantization_config", None, "weights fp8 bf16"),
        ("tie_word_embeddings", True, "weights active"),
        ("max_position_embeddings", 65536, ""),
    ],
)
def test_a_field_moves_the_numbers_that_it_should(
    small: Build, flops: Flops, field: str, value: object, moves: str
) -> None:
    before, after = numbers(small("decode"), flops), numbers(small("decode", **{field: value}), flops)
    assert {name for name in before if before[name] != pytest.approx(after[name], rel=1e-12)} == set(moves.split())


@pytest.mark.parametrize("stage", ["decode", "prefill"])
@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({"expert_copies": True}, {"to_hbm"}),
        ({"hyper_connections": False}, {"hyper_expand", "hyper_read", "hyper_write"}),
        ({"indexer": False}, {"index_select"}),
        ({"hash_routing": False}, {"hash_route"}),
        ({"kv_append": False}, {"kv_append"}),
        ({"expert_coverage": "distinct", "embedding_read": "table", "partial_state": False}, set()),
    ],
)
def test_each_assumption_switches_its_operators(
    small: Build, stage: str, change: dict[str, Any], kinds: set[str]
) -> None:
    usual = {op.kind for op in small(stage).ops}
    switched = {op.kind for op in small(stage, replace(PHYSICAL, **change)).ops}
    assert usual ^ switched == (kinds if stage == "decode" else kinds - {"kv_append"})


def test_indexed_layers_are_those_of_ratio_4() -> None:
    """The DeepSeek-V4 report, section 2.3.1: CSA compresses by 4, overlapping, and chooses entries by an indexer."""
    assert INDEXED_RATIO == 4
