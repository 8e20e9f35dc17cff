"""Embedding and head."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.ir import Graph, Role

Build = Callable[..., Graph]


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
def test_the_head_of_a_prompt_runs_on_its_last_token(small: Build, assumptions: Assumptions) -> None:
    graph = small("prefill", assumptions, batch=4)
    head = [op for op in graph.ops if op.block == "head"]
    assert head[0].kind == "last_token"
    assert all("seq" not in op.output.dims for op in head)
    assert graph.tensors["head.logits"].elements(graph.sizes) == 4 * 129280
    assert not [op for op in small("decode", assumptions).ops if op.kind == "last_token"]


def test_the_step_ends_in_one_token_a_request(small: Build) -> None:
    graph = small("decode", batch=4)
    token = graph.tensors[graph.outputs[0]]
    assert (token.name, token.dims, token.dtype, token.role) == ("head.token", ("batch",), "int32", Role.OUTPUT)


def test_a_tied_head_reads_the_embedding_table(small: Build) -> None:
    graph = small("decode", tie_word_embeddings=True)
    assert graph.op_by_name["head.logits"].operands[1].name == "embed.table"
    assert "head.head_w" not in graph.tensors


def test_tokens_are_an_input_that_all_blocks_share(small: Build) -> None:
    graph = small("decode")
    assert {op.block for op, _ in graph.consumers["tokens"]} == {"embed", "layers.0", "layers.1", "layers.2"}
    assert graph.tensors["tokens"].role is Role.INPUT
