"""The whole graph: published totals, blocks, what a step leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.ir import Graph
from rooflang.ir.blocks import split_blocks
from rooflang.models import Workload, load, measure

GIB = 2**30

Build = Callable[..., Graph]
Flops = Callable[[Graph], dict[str, float]]


def full(stage: Any, assumptions: Assumptions, context: int = 65536) -> Graph:
    return load("glm-5.3").build(Workload(stage=stage, context=context, batch=8), assumptions)


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
def test_weight_bytes_of_the_paper(assumptions: Assumptions) -> None:
    """RoofLang paper, Tables 7 and 8: 173.618 MiB × 4,096. The checkpoint is FP8 as the paper serves it."""
    for stage in ("decode", "prefill"):
        assert f"{measure.weight_bytes(full(stage, assumptions)) / GIB:.4f}" == "694.4729"


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize(
    ("context", "footprint", "read"), [(65536, "2.90625", "0.24976"), (1048576, "46.50000", "2.71069")]
)
def test_kv_bytes_of_the_paper(context: int, footprint: str, read: str, assumptions: Assumptions) -> None:
    graph = full("decode", assumptions, context)
    assert f"{measure.kv_footprint_bytes(graph) / GIB:.5f}" == footprint
    assert f"{measure.kv_read_bytes(graph, assumptions) / GIB:.5f}" == read


def test_parameters() -> None:
    """The checkpoint's tensors without the MTP layer and the router's 19,200 correction biases; the paper's Table 3
    rounds to 744B, 40B active."""
    found = load("glm-5.3").describe()
    assert found.parameters == 743_377_019_904 - 19_200
    assert found.active_parameters == pytest.approx(41.2505e9, rel=1e-5)
    assert found.attention == "21 × top-2048 of context, 57 × the same choice again"
    assert found.ffn == "top-8 of 256 experts + 1 shared, the first 3 layers dense"


def test_block_kinds() -> None:
    """Dense with an indexer, dense whose choice others use, experts that use it, experts with an indexer."""
    counts = split_blocks(full("decode", PHYSICAL)).counts()
    assert counts == {"embed": 1, "layers.0": 2, "layers.2": 1, "layers.3": 57, "layers.6": 18, "head": 1}


def test_what_a_step_leaves_behind() -> None:
    assert full("decode", PHYSICAL).outputs == ("head.token",)
    left = set(full("decode", PAPER).outputs)
    assert left == {"head.token"} | {f"layers.{i}.kv_norm" for i in range(78)} | {
        f"layers.{i}.index_norm" for i in (0, 1, *range(2, 78, 4))
    }


def test_flops_of_a_decode_step_by_hand(flops: Flops) -> None:
    """At 64K, per token: two FLOPs per weight met, attention in BF16, index scores in FP8, their sums in FP32."""
    found = {peak: amount / 8 for peak, amount in flops(full("decode", PAPER)).items()}
    hidden, heads = 6144, 64
    projections = hidden * 2048 + 2048 * heads * 256 + hidden * 576 + 512 * heads * (192 + 256) + heads * 256 * hidden
    expert = 3 * hidden * 2048
    index = 2048 * 32 * 128 + hidden * 128
    weights = 78 * projections + 75 * 9 * expert + 3 * 3 * hidden * 12288 + 21 * index
    assert found["fp8"] == pytest.approx(2 * weights + 21 * 2 * 32 * 128 * 65536)
    assert found["fp32"] == pytest.approx(75 * 2 * hidden * 256 + 21 * 3 * 32 * 65536)
    assert found["bf16"] == pytest.approx(78 * 2 * heads * 2048 * (576 + 512) + 2 * hidden * 154880, rel=0.01)


def test_a_field_moves_the_numbers_that_it_should(small: Build) -> None:
    base = small("decode")
    assert measure.kv_read_bytes(small("decode", index_topk=1024), PHYSICAL) < measure.kv_read_bytes(base, PHYSICAL)
    wider = small("decode", qk_rope_head_dim=128)
    assert measure.kv_footprint_bytes(wider) == measure.kv_footprint_bytes(base) + 8 * 64 * 65536
    assert wider.sizes["query"] == 192 + 128
    bf16 = small("decode", quantization_config=None)
    assert bf16.tensors["layers.3.experts_w13"].dtype == bf16.tensors["layers.0.wq_a"].dtype == "bf16"
    assert base.tensors["layers.3.router_w"].dtype == "fp32"
    assert small("decode", moe_router_dtype="bfloat16").tensors["layers.3.router_w"].dtype == "bf16"
    assert small("decode", first_k_dense_replace=0).op_by_name["layers.0.expert_up"].kind == "gated_matmul"
    assert small("decode", n_shared_experts=0).op_by_name["layers.3.ffn_add"].operands[1].name == "layers.3.combine"
