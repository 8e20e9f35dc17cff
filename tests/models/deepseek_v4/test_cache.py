"""Where the caches come from: pooled in prefill, appended to in decode, and what each profile leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.ir import Graph, Role, op_kind

Build = Callable[..., Graph]


def written_bytes(graph: Graph, name: str) -> float:
    op = graph.op_by_name[name]
    return float(op.output.bytes(graph.sizes) * op_kind(op.kind).write_fraction(op, graph.sizes, graph.sizes))


def read_bytes(graph: Graph, name: str) -> float:
    op = graph.op_by_name[name]
    share = op_kind(op.kind).read_fraction
    return float(
        sum(t.bytes(graph.sizes) * share(op, i, graph.sizes, graph.sizes, PHYSICAL) for i, t in enumerate(op.operands))
    )


@pytest.mark.parametrize(
    ("name", "entry_bytes"),
    [
        ("layers.2.window", 512),
        ("layers.2.context", 512 / 4),
        ("layers.2.index", 128 * 0.5 / 4),
        ("layers.3.context", 512 / 128),
    ],
)
def test_a_step_appends_its_share_of_an_entry(small: Build, name: str, entry_bytes: float) -> None:
    graph = small("decode", batch=8)
    assert written_bytes(graph, name) == pytest.approx(8 * entry_bytes)
    op = graph.op_by_name[name]
    assert op.kind == "kv_append"
    assert op.operands[1].role is op.output.role is Role.KV_CACHE
    assert any(name in (t.name for t in user.operands) for user, _ in graph.consumers[name])


def test_attention_reads_the_cache_after_the_append(small: Build) -> None:
    operands = [t.name for t in small("decode").op_by_name["layers.2.attention"].operands]
    assert operands[1:3] == ["layers.2.window", "layers.2.context"]


def test_without_appends_attention_reads_the_leaves_and_new_entries_are_outputs(small: Build) -> None:
    graph = small("decode", replace(PHYSICAL, kv_append=False))
    operands = [t.name for t in graph.op_by_name["layers.2.attention"].operands]
    assert operands[1:3] == ["layers.2.window_cache", "layers.2.context_cache"]
    left = {f"layers.2.{name}" for name in ("kv_norm", "compressor", "index_compressor")}
    assert left < set(graph.outputs)


def test_appends_without_compressor_go_to_the_window_only(small: Build) -> None:
    graph = small("decode", replace(PHYSICAL, compressor="prefill"))
    assert {op.name for op in graph.ops if op.kind == "kv_append"} == {f"layers.{i}.window" for i in range(6)}


def test_without_an_index_compressor_no_step_appends_index_keys(small: Build) -> None:
    graph = small("decode", replace(PHYSICAL, indexer=False))
    assert graph.op_by_name["layers.2.context"].kind == "kv_append"
    assert graph.op_by_name["layers.2.attention"].operands[3].name == "layers.2.index_cache"


def test_a_prompt_is_pooled_by_group(small: Build) -> None:
    graph = small("prefill", context=8192, batch=2)
    for name, dims, dtype in (
        ("layers.2.context", ("batch", "ctx4", "head_dim"), "fp8"),
        ("layers.2.index", ("batch", "ctx4", "index_dim"), "fp4"),
        ("layers.3.context", ("batch", "ctx128", "head_dim"), "fp8"),
    ):
        pooled = graph.op_by_name[name]
        assert (pooled.kind, pooled.output.dims, pooled.output.dtype) == ("pool", dims, dtype)
    assert graph.op_by_name["layers.2.index"].operands[0].name == "layers.2.index_compressor"
    assert read_bytes(graph, "layers.2.context") == 2 * 8192 * 2 * 2 * 512 * 2
    assert (graph.sizes["ctx4"], graph.sizes["ctx128"]) == (2048, 64)


def test_the_papers_prompt_pays_the_write_of_a_pool_alone(small: Build) -> None:
    """Its declaration has the compressor write entries, in FP32, and cuts the index keys from the main cache."""
    graph = small("prefill", PAPER, context=8192, batch=2)
    for name, entry_bytes in (("layers.2.context", 512), ("layers.2.index", 64)):
        assert read_bytes(graph, name) == 0
        assert written_bytes(graph, name) == 2 * 2048 * entry_bytes
        assert graph.op_by_name[name].operands[0].name == "layers.2.compressor"
    assert graph.tensors["layers.2.compressor_w"].dtype == "fp32"
    assert graph.op_by_name["layers.2.compressor"].peak == "fp32"


def test_the_papers_decode_has_no_compressor(small: Build) -> None:
    graph = small("decode", PAPER)
    assert not [op for op in graph.ops if op.group in ("compressor", "indexer", "kv cache")]
    assert {t.name for t in graph.leaves if t.role is Role.KV_CACHE and t.name.startswith("layers.2.")} == {
        "layers.2.window_cache", "layers.2.context_cache", "layers.2.index_cache",
    }  # fmt: skip


def test_the_compressor_overlaps_at_ratio_4_only(small: Build) -> None:
    tensors = small("decode").tensors
    assert tensors["layers.2.compressor_w"].dims == ("hidden", "part", "overlap", "head_dim")
    assert tensors["layers.3.compressor_w"].dims == ("hidden", "part", "head_dim")
    assert {tensors[f"layers.{i}.compressor_w"].dtype for i in (2, 3)} == {"bf16"}
