"""The whole graph: published totals, blocks, what a step leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.ir import Graph
from rooflang.ir.blocks import split_blocks
from rooflang.models import Workload, load, measure

GIB = 2**30

Build = Callable[..., Graph]
Flops = Callable[[Graph], dict[str, float]]


def full(stage: Any, assumptions: Assumptions, context: int = 65536) -> Graph:
    return load("kimi-k3").build(Workload(stage=stage, context=context, batch=8), assumptions)


def test_weight_bytes() -> None:
    """RoofLang paper, Tables 7 and 8: 2,814.346 MiB × 512. The checkpoint has BF16 outside the routed experts."""
    for stage in ("decode", "prefill"):
        assert f"{measure.weight_bytes(full(stage, PAPER)) / GIB:.4f}" == "1407.1731"
    paper = full("decode", PAPER)
    more = measure.weight_bytes(full("decode", PHYSICAL)) - measure.weight_bytes(paper)
    # A BF16 weight has a byte more than an FP8 one, which has a scale; less what only the paper's programs declare.
    eight_bit = sum(t.elements(paper.sizes) for t in paper.leaves if t.dtype == "fp8_block")
    declared = 69 * (3 * 12288 + 12288 - 128) * 2
    assert more == pytest.approx(eight_bit * (1 - 1 / 128**2) - declared)


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize(("context", "bytes_gib"), [(65536, "1.06485"), (1048576, "13.72110")])
def test_cache_and_states_of_the_paper(context: int, bytes_gib: str, assumptions: Assumptions) -> None:
    """All that a request keeps is read in a step."""
    graph = full("decode", assumptions, context)
    assert f"{measure.kv_footprint_bytes(graph) / GIB:.5f}" == bytes_gib
    assert f"{measure.kv_read_bytes(graph, assumptions) / GIB:.5f}" == bytes_gib


def test_parameters() -> None:
    """The checkpoint's tensors without the 82,432 correction biases of its routers; the paper's Table 3 has 2.8T, 104B
    active."""
    found = load("kimi-k3").describe()
    assert found.parameters == pytest.approx(2_779_484_478_208 - 82_432, rel=1e-8)
    assert found.active_parameters == pytest.approx(105.36e9, rel=1e-3)
    assert found.attention == "69 × state of 96 heads, 24 × context"
    assert found.ffn == "top-16 of 896 experts + 2 shared, the first 1 layers dense"


def test_layers_differ_by_attention_and_by_how_many_blocks_they_mix() -> None:
    blocks = split_blocks(full("decode", PHYSICAL))
    # The dense first layer, and for each of 8 blocks of layers: its first (but of the first block), KDA, MLA.
    assert len(blocks.kinds) == 2 + 1 + 7 + 8 + 8
    assert len(set(blocks.port_group.values())) == 1 + 1  # the stream of all depths, and the tokens


def test_what_a_step_leaves_behind() -> None:
    assert full("decode", PHYSICAL).outputs == ("head.token",)
    latent = [*range(3, 92, 4), 92]
    assert set(full("decode", PAPER).outputs) == {"head.token"} | {f"layers.{i}.kv_norm" for i in latent}


def test_flops_of_a_decode_step_by_hand(flops: Flops) -> None:
    """At 64K, per token: two FLOPs per weight met, latent attention in FP8, the delta rule in BF16, mixes in FP32."""
    found = {peak: amount / 8 for peak, amount in flops(full("decode", PAPER)).items()}
    hidden, wide = 7168, 96 * 128
    assert found["fp4"] == pytest.approx(92 * 2 * 16 * 3 * 3584 * 3072)
    latent = hidden * 1536 + 1536 * 96 * 192 + hidden * 576 + 512 * 96 * 256 + 2 * hidden * wide
    linear = 5 * hidden * wide + hidden * 128 + 128 * wide
    feed = 92 * 3 * hidden * 6144 + 3 * hidden * 33792
    attention = 24 * 2 * 96 * 65536 * (576 + 512)
    assert found["fp8"] == pytest.approx(2 * (24 * latent + 69 * linear + feed) + attention)
    vectors = sum(layer // 12 + 2 for layer in range(93)) * 2 - 2 - 7 + 9
    assert found["fp32"] == 7 * hidden * vectors
    products = 92 * (hidden * 896 + 2 * hidden * 3584) + 69 * hidden * 96 + hidden * 163840
    state = 69 * 96 * (7 * 128 * 128 + 2 * 128)
    assert found["bf16"] == pytest.approx(2 * products + state, rel=0.01)


def test_a_field_moves_the_numbers_that_it_should(small: Build) -> None:
    base = small("decode")
    kda = msgspec.structs.replace
    config: Any = load("kimi-k3").config
    short = kda(config.text_config.linear_attn_config, short_conv_kernel_size=3)
    assert measure.kv_footprint_bytes(small("decode", linear_attn_config=short)) == (
        measure.kv_footprint_bytes(base) - 5 * 3 * 12288 * 2
    )
    assert small("decode", quantization_config=None).tensors["layers.1.experts_w13"].dtype == "bf16"
    assert base.tensors["layers.1.experts_w13"].dtype == "mxfp4"
    assert small("decode", mla_use_output_gate=False).op_by_name["layers.3.o"].operands[0].name == "layers.3.v_up"
    assert small("decode", latent_moe_use_norm=False).op_by_name["layers.1.latent_up"].operands[0].name == (
        "layers.1.combine"
    )
    assert small("decode", num_shared_experts=4).sizes["shared_ffn"] == 4 * 3072
    assert small("decode", first_k_dense_replace=0).op_by_name["layers.0.expert_up"].kind == "gated_matmul"
