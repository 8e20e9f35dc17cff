"""Kimi Delta Attention: where its state is, what is one kernel, what a prompt leaves behind."""

from __future__ import annotations

from collections.abc import Callable

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.ir import Graph, Role

Build = Callable[..., Graph]


def test_the_state_is_a_leaf_in_bf16_and_updated_in_place(small: Build) -> None:
    graph = small("decode")
    states = {t.name: t for t in graph.leaves if t.role is Role.STATE and t.name.startswith("layers.1.")}
    assert set(states) == {f"layers.1.{name}" for name in ("q_state", "k_state", "v_state", "state")}
    assert {t.dtype for t in states.values()} == {"bf16"}
    update = graph.op_by_name["layers.1.kda_update"]
    assert update.operands[6].name == "layers.1.state"
    assert update.output.role is Role.STATE
    assert graph.op_by_name["layers.1.kda"].operands[1].name == "layers.1.kda_update"
    assert graph.sizes["tap"] == 4
    assert graph.op_by_name["layers.1.q_history"].kind == "conv_push"


def test_latent_layers_have_a_cache_and_no_state(small: Build) -> None:
    graph = small("decode")
    kept = {t.name: t.role for t in graph.leaves if t.name.startswith("layers.3.") and t.role is not Role.WEIGHT}
    assert kept == {"layers.3.entries_cache": Role.KV_CACHE}


def test_a_prompt_leaves_state_and_histories_behind(small: Build) -> None:
    graph = small("prefill")
    assert {f"layers.1.{name}" for name in ("q_history", "k_history", "v_history", "kda_state")} < set(graph.outputs)
    assert graph.op_by_name["layers.1.kda_state"].attr("fused") is True
    assert graph.op_by_name["layers.1.kda"].kind == "delta_scan"
    # A map of a head is 128 × 128 and 128 × 128 FP32 numbers.
    assert graph.op_by_name["layers.1.kda"].attr("map_bytes") == 2 * 128 * 128 * 4


def test_rates(small: Build) -> None:
    """RoofLang paper, Table 4."""
    graph = small("decode", PAPER)
    assert graph.op_by_name["layers.1.kda_update"].peak == graph.op_by_name["layers.1.kda"].peak == "bf16"
    assert graph.op_by_name["layers.1.q"].peak == graph.op_by_name["layers.3.attention"].peak == "fp8"
    assert graph.op_by_name["layers.1.beta"].peak == "bf16"
    assert small("decode", PHYSICAL).op_by_name["layers.1.q"].peak == "bf16"


def test_the_papers_convolutions_are_part_of_the_kernel_and_have_a_bias(small: Build) -> None:
    for stage, kind in (("decode", "conv_step"), ("prefill", "short_conv")):
        paper, physical = (small(stage, a).op_by_name["layers.1.k_conv"] for a in (PAPER, PHYSICAL))
        assert paper.kind == physical.kind == kind
        assert (paper.output.role, physical.output.role) == (Role.ON_CHIP, Role.ACTIVATION)
        assert (len(paper.operands), len(physical.operands)) == (3, 2)


def test_the_output_norm_has_a_gain_per_channel(small: Build) -> None:
    assert small("decode").tensors["layers.1.out_norm_gain"].dims == ("kda_value",)
    assert small("decode", PAPER).tensors["layers.1.out_norm_gain"].dims == ("kda_head", "kda_value")
