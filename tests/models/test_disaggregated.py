"""A prompt and the decode step after it, in one graph."""

from __future__ import annotations

import pytest

from rooflang.errors import ModelError
from rooflang.ir.tensor import Role
from rooflang.models import Workload, load
from rooflang.models.disaggregated import _handed, prefill_then_decode


@pytest.mark.parametrize("name", ["deepseek-v4-flash", "glm-5.3", "kimi-k3", "llama-3.1-8b", "gpt-oss-20b"])
def test_decode_reads_all_that_the_prompt_leaves(name: str) -> None:
    model = load(name)
    first, second = (model.build(Workload(stage=stage, context=8192, batch=1)) for stage in ("prefill", "decode"))
    graph = prefill_then_decode(model, 8192)
    assert len(graph.ops) == len(first.ops) + len(second.ops)
    assert graph.outputs == tuple(f"decode.{name}" for name in second.outputs)
    assert not [leaf for leaf in graph.leaves if leaf.role in (Role.KV_CACHE, Role.STATE)]
    crossing = {
        tensor.name
        for op in graph.ops
        if op.name.startswith("decode.")
        for tensor in op.operands
        if tensor.name.startswith("prefill.")
    }
    assert crossing == {f"prefill.{name}" for name in first.outputs}
    for role in (Role.WEIGHT,):
        assert graph.leaf_bytes(role) == first.leaf_bytes(role) + second.leaf_bytes(role)


def test_caches_are_handed_to_their_own_layer_in_their_own_order() -> None:
    model = load("kimi-k3")
    first, second = (model.build(Workload(stage=stage, context=8192, batch=1)) for stage in ("prefill", "decode"))
    handed = dict(_handed(first, second, "test"))
    assert handed["layers.0.k_state"] == "layers.0.k_history"
    assert handed["layers.7.entries_cache"] == "layers.7.entries"
    assert handed["tokens"] == "head.token"
    assert len(set(handed.values())) == len(handed)


def test_a_prompt_that_leaves_too_little_is_refused() -> None:
    model = load("llama-3.1-8b")
    first = model.build(Workload(stage="prefill", context=4096, batch=1))
    second = load("llama-3.1-70b").build(Workload(stage="decode", context=4096, batch=1))
    with pytest.raises(ModelError, match="leaves nothing for layers"):
        dict(_handed(first, second, "test"))
