"""What holds of every family's graphs: well formed at full depth, and a prompt leaves what a decode step reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.ir import Graph, Role
from rooflang.models import Workload, load, measure

Check = Callable[[Graph, set[str], str], None]

COMMON = {
    "attention", "projections", "router", "dispatch", "experts", "shared expert", "norms", "residual", "embedding",
    "head", "kv cache",
}  # fmt: skip
GROUPS = {
    "deepseek-v4-flash": {*COMMON, "compressor", "indexer", "hyper-connections"},
    "deepseek-v4-pro": {*COMMON, "compressor", "indexer", "hyper-connections"},
    "glm-5.3": {*COMMON, "indexer", "dense ffn"},
    "kimi-k3": {*COMMON, "dense ffn", "state", "latent adapters"},
}


def full(model: str, stage: Any, assumptions: Assumptions) -> Graph:
    return load(model).build(Workload(stage=stage, context=65536, batch=8), assumptions)


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize("stage", ["decode", "prefill"])
@pytest.mark.parametrize("model", GROUPS)
def test_graphs_at_full_depth_are_well_formed(
    model: str, stage: str, assumptions: Assumptions, well_formed: Check
) -> None:
    well_formed(full(model, stage, assumptions), GROUPS[model], stage)


@pytest.mark.parametrize("base", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize(
    ("model", "stage", "group", "changes"),
    [
        ("deepseek-v4-pro", "decode", "drafting", {"draft_tokens": 2}),
        ("glm-5.3", "decode", "drafting", {"draft_tokens": 2}),
        ("kimi-k3", "prefill", "vision", {"images": 2}),
    ],
)
def test_graphs_with_extensions_are_well_formed(
    model: str, stage: str, group: str, changes: dict[str, Any], base: Assumptions, well_formed: Check
) -> None:
    well_formed(full(model, stage, replace(base, **changes)), {*GROUPS[model], group}, stage)


@pytest.mark.parametrize("model", GROUPS)
def test_a_prompt_leaves_what_a_decode_step_reads(model: str) -> None:
    graph = full(model, "prefill", PHYSICAL)
    made = [graph.tensors[name] for name in graph.outputs[1:]]
    assert all(t.role is Role.OUTPUT for t in made)
    kept = sum(t.bytes(graph.sizes) for t in made) / graph.sizes["batch"]
    assert kept == measure.kv_footprint_bytes(full(model, "decode", PHYSICAL))
