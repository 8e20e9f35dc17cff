"""Attention residuals: which depths each sub-layer mixes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.ir import Graph
from rooflang.ir.op import op_kind

Build = Callable[..., Graph]


def mixed(graph: Graph, name: str) -> list[str]:
    return [t.name for t in graph.op_by_name[name].operands[2:]]


def test_the_first_sub_layer_reads_the_embedding(small: Build) -> None:
    graph = small("decode")
    assert graph.op_by_name["layers.0.attn_norm"].operands[0].name == "embed.rows"
    assert "layers.0.attn_mix" not in graph.op_by_name


def test_a_block_that_has_just_begun_has_no_sum(small: Build) -> None:
    """The embedding is the first block alone; later blocks are of three layers here."""
    graph = small("decode")
    assert mixed(graph, "layers.0.ffn_mix") == ["embed.rows", "layers.0.o"]
    assert mixed(graph, "layers.1.attn_mix") == ["embed.rows", "layers.0.ffn_add"]
    assert mixed(graph, "layers.3.attn_mix") == ["embed.rows", "layers.2.ffn_add"]
    assert mixed(graph, "layers.3.ffn_mix") == ["embed.rows", "layers.2.ffn_add", "layers.3.o"]
    assert "layers.3.attn_add" not in graph.op_by_name
    assert mixed(graph, "head.output_mix") == ["embed.rows", "layers.2.ffn_add", "layers.5.ffn_add"]


def test_outputs_of_a_block_are_summed(small: Build) -> None:
    operands = [t.name for t in small("decode").op_by_name["layers.1.attn_add"].operands]
    assert operands == ["layers.0.ffn_add", "layers.1.o"]


def test_a_mix_has_a_gain_and_a_query_of_its_own(small: Build) -> None:
    graph = small("decode")
    weights = [t.name for t in graph.op_by_name["layers.1.ffn_mix"].operands[:2]]
    assert weights == ["layers.1.ffn_mix_gain", "layers.1.ffn_mix_query"]


@pytest.mark.parametrize(("assumptions", "whole"), [(PAPER, [None, True, None]), (PHYSICAL, [None] * 3)])
def test_the_head_of_a_prompt_mixes_last_tokens(small: Build, assumptions: object, whole: list[object]) -> None:
    graph = small("prefill", assumptions)
    picked = [graph.op_by_name[f"head.last_token{suffix}"] for suffix in ("_0", "_1", "")]
    assert [op.operands[0].name for op in picked] == ["embed.rows", "layers.2.ffn_add", "layers.5.ffn_add"]
    assert [op.attr("whole") for op in picked] == whole
    assert mixed(graph, "head.output_mix") == [op.name for op in picked]


@pytest.mark.parametrize(("assumptions", "whole"), [(PAPER, 1), (PHYSICAL, 0)])
def test_what_has_come_together_for_the_head_is_read_whole(small: Build, assumptions: Assumptions, whole: int) -> None:
    graph = small("prefill", assumptions)
    picked = [graph.op_by_name[f"head.last_token{suffix}"] for suffix in ("_0", "_1", "")]
    shares = [op_kind(op.kind).read_fraction(op, 0, graph.sizes, graph.sizes, assumptions) for op in picked]
    one = 1 / graph.sizes["seq"]
    assert shares == [one, 1.0 if whole else one, one]
