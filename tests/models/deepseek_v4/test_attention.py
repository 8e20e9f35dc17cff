"""Attention of one layer: dtypes, how its operators may be cut, what they attend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.ir import CutKind, Graph, signature

Build = Callable[..., Graph]

WINDOW_LAYER, CSA_LAYER, HCA_LAYER = "layers.0", "layers.2", "layers.3"


def cuts(graph: Graph, op: str) -> set[tuple[CutKind, str]]:
    return {(cut.kind, cut.dim) for cut in signature(graph.op_by_name[op])}


def test_the_grouped_output_projection_is_parallel_in_groups_and_sums_over_heads(small: Build) -> None:
    found = cuts(small("decode"), "layers.0.o_a")
    assert {(CutKind.PAR, "group"), (CutKind.PAR, "o_lora"), (CutKind.SUM, "head"), (CutKind.SUM, "head_dim")} < found
    assert (CutKind.SUM, "group") not in found
    assert {(CutKind.SUM, "group"), (CutKind.SUM, "o_lora")} < cuts(small("decode"), "layers.0.o_b")


@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_attention_is_cut_by_heads_and_by_context(small: Build, stage: str) -> None:
    found = cuts(small(stage), f"{CSA_LAYER}.attention")
    rows = {(CutKind.PAR, label) for label in ("batch", "group", "head")}
    assert found == rows | {(CutKind.FOLD, "ctx4")} | ({(CutKind.PAR, "seq")} if stage == "prefill" else set())
    assert (CutKind.FOLD, "window") in cuts(small(stage), f"{WINDOW_LAYER}.attention")
    assert (CutKind.FOLD, "ctx128") in cuts(small(stage), f"{HCA_LAYER}.attention")


def test_parts_by_layer_and_profile(small: Build) -> None:
    def parts(assumptions: Assumptions, layer: str) -> tuple[str, ...]:
        found = small("decode", assumptions).op_by_name[f"{layer}.attention"].attr("parts")
        assert isinstance(found, tuple)
        return found

    for assumptions in (PAPER, PHYSICAL):
        assert parts(assumptions, WINDOW_LAYER) == ("window",)
        assert parts(assumptions, HCA_LAYER) == ("window", "context")
    assert parts(PAPER, CSA_LAYER) == ("window", "context", "index")
    assert parts(PHYSICAL, CSA_LAYER) == ("window", "context", "selection")


def test_rates_of_attention_and_index(small: Build) -> None:
    graph = small("decode")
    assert graph.op_by_name[f"{CSA_LAYER}.attention"].peak == "fp8"
    assert graph.op_by_name[f"{CSA_LAYER}.selection"].peak == "fp4"


def test_dtypes_of_the_weights(small: Build) -> None:
    """RoofLang paper, Table 4: FP8 projections, BF16 first output projection."""
    tensors = small("decode").tensors
    fp8 = ("wq_a", "wq_b", "wkv", "wo_b", "index_wq_b")
    assert {tensors[f"{CSA_LAYER}.{name}"].dtype for name in fp8} == {"fp8_block"}
    assert {tensors[f"{CSA_LAYER}.{name}"].dtype for name in ("wo_a", "index_weights_w")} == {"bf16"}
    bare = small("decode", quantization_config=None).tensors
    assert {bare[f"{CSA_LAYER}.{name}"].dtype for name in fp8} == {"bf16"}


def test_queries_keys_and_output_follow_one_another(small: Build) -> None:
    graph = small("decode")
    sources = {name: graph.op_by_name[f"layers.0.{name}"].operands[0].name for name in (
        "q_a", "q_norm", "q_b", "kv", "kv_norm", "attention", "o_a", "o_b",
    )}  # fmt: skip
    assert sources == {
        "q_a": "layers.0.attn_norm",
        "q_norm": "layers.0.q_a",
        "q_b": "layers.0.q_norm",
        "kv": "layers.0.attn_norm",
        "kv_norm": "layers.0.kv",
        "attention": "layers.0.q_b",
        "o_a": "layers.0.attention",
        "o_b": "layers.0.o_a",
    }


def test_the_index_query_comes_from_the_low_rank_query(small: Build) -> None:
    graph = small("decode")
    assert graph.op_by_name[f"{CSA_LAYER}.index_q"].operands[0].name == f"{CSA_LAYER}.q_norm"
    assert graph.op_by_name[f"{CSA_LAYER}.index_weights"].operands[0].name == f"{CSA_LAYER}.attn_norm"


def test_a_partial_row_is_measured_against_a_row_of_values(small: Build) -> None:
    fold = next(c for c in signature(small("decode").op_by_name["layers.0.attention"]) if c.kind is CutKind.FOLD)
    assert fold.partial_scale == 1 + 8 / (512 * 2)
