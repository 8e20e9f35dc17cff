"""Experts that work on a latent vector."""

from __future__ import annotations

from collections.abc import Callable

from rooflang.ir import Graph

Build = Callable[..., Graph]


def test_experts_take_latent_vectors_and_the_router_hidden_ones(small: Build) -> None:
    graph = small("decode")
    assert graph.op_by_name["layers.1.logits"].operands[0].name == "layers.1.ffn_norm"
    assert graph.op_by_name["layers.1.dispatch"].operands[0].name == "layers.1.latent_down"
    assert graph.tensors["layers.1.experts_w13"].dims == ("expert", "moe_latent", "gate", "ffn")
    assert graph.sizes["moe_latent"] == 3584


def test_what_comes_back_is_normed_and_widened_and_meets_the_shared_experts(small: Build) -> None:
    graph = small("decode")
    assert graph.op_by_name["layers.1.latent_norm"].operands[0].name == "layers.1.combine"
    assert [t.name for t in graph.op_by_name["layers.1.experts_sum"].operands] == [
        "layers.1.latent_up", "layers.1.shared_down",
    ]  # fmt: skip
    assert graph.op_by_name["layers.1.shared_up"].operands[0].name == "layers.1.ffn_norm"
    assert graph.tensors["layers.1.latent_down_w"].dtype == graph.tensors["layers.1.router_w"].dtype == "bf16"


def test_the_first_layer_is_dense(small: Build) -> None:
    graph = small("decode")
    assert graph.sizes["dense_ffn"] == 33792
    assert graph.op_by_name["layers.0.ffn_add"].operands[1].name == "layers.0.dense_down"
