"""Router, experts and shared expert of one layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.ir import Graph, op_kind

Build = Callable[..., Graph]


def test_dtypes_and_rates(small: Build) -> None:
    """RoofLang paper, Table 4: FP4 routed experts, FP8 shared expert, BF16 router with an FP32 result."""
    graph = small("decode")
    rates = {name: graph.op_by_name[f"layers.0.{name}"].peak for name in ("expert_up", "expert_down", "shared_up")}
    assert rates == {"expert_up": "fp4", "expert_down": "fp4", "shared_up": "fp8"}
    assert graph.tensors["layers.0.experts_w13"].dtype == "mxfp4"
    assert graph.op_by_name["layers.0.logits"].peak == "bf16"
    assert graph.tensors["layers.0.logits"].dtype == "fp32"


def test_routed_tensors_hold_top_k_rows_a_token(small: Build) -> None:
    graph = small("decode", batch=512)
    for name, width in (("dispatch", 4096), ("expert_up", 2048), ("expert_down", 4096)):
        assert graph.tensors[f"layers.0.{name}"].elements(graph.sizes) == pytest.approx(512 * 6 * width)
    assert graph.tensors["layers.0.route"].elements(graph.sizes) == pytest.approx(512 * 6)


def test_the_first_layers_route_by_token_id(small: Build) -> None:
    graph = small("decode")
    assert [graph.op_by_name[f"layers.{i}.route"].kind for i in range(6)] == ["hash_route"] * 3 + ["route"] * 3
    logits, tokens, table = graph.op_by_name["layers.2.route"].operands
    assert (logits.name, tokens.name, table.dims) == ("layers.2.logits", "tokens", ("vocab", "route"))
    assert graph.sizes["route"] == 6


def test_copies_stand_before_and_after_the_experts_and_cost_one_pass(small: Build) -> None:
    graph = small("decode", PAPER)
    assert graph.op_by_name["layers.0.expert_up"].operands[0].name == "layers.0.expert_gather"
    assert graph.op_by_name["layers.0.combine"].operands[0].name == "layers.0.expert_scatter"
    for name, source in (("expert_gather", "dispatch"), ("expert_scatter", "expert_down")):
        copy = graph.op_by_name[f"layers.0.{name}"]
        assert (copy.kind, copy.operands[0].name) == ("to_hbm", f"layers.0.{source}")
        assert copy.output.bytes(graph.sizes) == copy.operands[0].bytes(graph.sizes)
        assert op_kind("to_hbm").read_fraction(copy, 0, graph.sizes, graph.sizes, PAPER) == 0


def test_routed_rows_travel_in_the_dtype_of_the_profile(small: Build) -> None:
    graph = small("decode", replace(PAPER, routed_dtype="fp8_block"))
    assert graph.tensors["layers.0.dispatch"].dtype == graph.tensors["layers.0.expert_gather"].dtype == "fp8_block"
    assert graph.tensors["layers.0.expert_down"].dtype == "bf16"
    assert small("decode", PHYSICAL).tensors["layers.0.dispatch"].dtype == "bf16"


def test_shared_experts_are_as_wide_as_they_are_many(small: Build) -> None:
    assert small("decode", n_shared_experts=3).sizes["shared_ffn"] == 3 * 2048
    graph = small("decode", n_shared_experts=0)
    assert "shared_ffn" not in graph.sizes
    assert graph.op_by_name["layers.0.ffn_write"].operands[2].name == "layers.0.combine"


def test_output_is_the_sum_of_routed_and_shared_experts(small: Build) -> None:
    operands = small("decode").op_by_name["layers.0.experts_sum"].operands
    assert [t.name for t in operands] == ["layers.0.combine", "layers.0.shared_down"]
