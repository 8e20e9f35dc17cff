"""Which entries a layer attends, where they come from, and what each profile makes a kernel of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.ir import Graph, Role

Build = Callable[..., Graph]


def attends(graph: Graph) -> list[str]:
    """For each layer the tensor of the ids that it attends."""
    return [op.operands[3].name for op in graph.ops if op.kind == "latent_attention"]


def test_shared_layers_attend_what_the_last_full_one_has_chosen(small: Build) -> None:
    for stage in ("decode", "prefill"):
        graph = small(stage)
        assert attends(graph) == [f"layers.{i}.selection" for i in (0, 1, 2, 2, 2, 2, 6, 6)]
        assert len([op for op in graph.ops if op.kind == "index_select"]) == 4


def test_without_a_list_every_layer_has_an_indexer(small: Build) -> None:
    assert attends(small("decode", indexer_types=None)) == [f"layers.{i}.selection" for i in range(8)]


def test_no_more_is_chosen_than_there_is(small: Build) -> None:
    graph = small("decode", context=100)
    assert graph.sizes["chosen"] == graph.op_by_name["layers.0.attention"].attr("select") == 100
    assert small("decode").sizes["chosen"] == 2048


def test_a_prompt_is_attended_up_to_each_position(small: Build) -> None:
    assert small("prefill").op_by_name["layers.0.attention"].attr("causal") is True
    assert small("decode").op_by_name["layers.0.attention"].attr("causal") is None
    assert small("prefill").op_by_name["layers.0.selection"].attr("causal") == 0.5


def test_rates_and_dtypes(small: Build) -> None:
    """RoofLang paper, Tables 3 and 4: attention in BF16, scores of the indexer in FP8, both caches in FP8."""
    graph = small("decode")
    assert graph.op_by_name["layers.0.attention"].peak == "bf16"
    assert graph.op_by_name["layers.0.selection"].peak == "fp8"
    assert graph.op_by_name["layers.0.q_absorb"].peak == "fp8"
    caches = {t.name: t.dtype for t in graph.leaves if t.role is Role.KV_CACHE and t.name.startswith("layers.0.")}
    assert caches == {"layers.0.entries_cache": "fp8", "layers.0.index_cache": "fp8"}


def test_a_step_attends_the_caches_after_its_own_entries_are_in_them(small: Build) -> None:
    graph = small("decode")
    assert graph.op_by_name["layers.0.attention"].operands[2].name == "layers.0.entries"
    assert graph.op_by_name["layers.0.selection"].operands[2].name == "layers.0.index"
    bare = small("decode", replace(PHYSICAL, kv_append=False))
    assert bare.op_by_name["layers.0.attention"].operands[2].name == "layers.0.entries_cache"


def test_the_papers_attention_is_one_kernel_with_its_projections(small: Build) -> None:
    inside = {"layers.0.q_absorb", "layers.0.attention"}
    assert {name for name, t in small("decode", PAPER).tensors.items() if t.role is Role.ON_CHIP} >= inside
    assert not [t for t in small("decode", PHYSICAL).tensors.values() if t.role is Role.ON_CHIP]
