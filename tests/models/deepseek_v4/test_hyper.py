"""The residual stream with and without hyper-connections."""

from __future__ import annotations

from collections.abc import Callable

from rooflang.assumptions import PAPER
from rooflang.ir import Graph

Build = Callable[..., Graph]


def reads(graph: Graph, op: str) -> list[str]:
    return [t.name for t in graph.op_by_name[op].operands]


def test_a_sub_layer_reads_the_stream_and_writes_back_to_it(small: Build) -> None:
    graph = small("decode")
    assert graph.tensors["embed.stream"].dims == ("batch", "copy", "hidden")
    assert reads(graph, "layers.0.attn_mix") == ["embed.stream", "layers.0.attn_mix_w"]
    assert reads(graph, "layers.0.attn_read") == ["embed.stream", "layers.0.attn_mix"]
    assert reads(graph, "layers.0.attn_norm")[0] == "layers.0.attn_read"
    assert reads(graph, "layers.0.attn_write") == ["embed.stream", "layers.0.attn_mix", "layers.0.o_b"]
    assert reads(graph, "layers.0.ffn_read") == ["layers.0.attn_write", "layers.0.ffn_mix"]
    assert reads(graph, "layers.0.ffn_write") == ["layers.0.attn_write", "layers.0.ffn_mix", "layers.0.experts_sum"]
    assert reads(graph, "layers.1.attn_mix")[0] == "layers.0.ffn_write"


def test_coefficients_read_write_and_mix_every_copy(small: Build) -> None:
    """24 at four copies: 4 to read, 4 to write, 4 × 4 to mix (`hc_attn_fn` of the checkpoint is 24 × 4·hidden)."""
    graph = small("decode")
    assert graph.sizes["mix"] == 24
    assert graph.tensors["layers.0.attn_mix_w"].elements(graph.sizes) == 24 * 4 * 4096
    assert graph.op_by_name["layers.0.attn_mix"].peak == "fp32"
    assert graph.tensors["head.head_mix_w"].elements(graph.sizes) == 4 * 4 * 4096


def test_one_stream_is_added_to(small: Build) -> None:
    graph = small("decode", PAPER)
    assert reads(graph, "layers.0.attn_add") == ["embed.rows", "layers.0.o_b"]
    assert reads(graph, "layers.0.ffn_norm")[0] == "layers.0.attn_add"
    assert reads(graph, "layers.0.ffn_add") == ["layers.0.attn_add", "layers.0.experts_sum"]
    assert reads(graph, "layers.1.attn_norm")[0] == "layers.0.ffn_add"
    assert "copy" not in graph.sizes
