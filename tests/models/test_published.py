"""Parameters and bytes of cache of the registered models, against what others have published and hand formulas."""

from __future__ import annotations

from typing import Any

import pytest

from rooflang.models import Workload, load, model_names
from rooflang.models.counts import counts
from rooflang.models.measure import active_parameters, kv_footprint_bytes, parameters
from rooflang.models.published import Published, agrees, published_parameters

FIGURES = {figures.model: figures for figures in published_parameters()}


@pytest.mark.parametrize("figures", FIGURES.values(), ids=FIGURES)
def test_parameters_are_those_that_are_published(figures: Published) -> None:
    found = counts(load(figures.model))
    assert agrees(figures.total_of(found), figures.total)
    assert not figures.active or agrees(figures.active_of(found), figures.active)
    assert figures.source


def test_there_are_figures_of_many_models() -> None:
    assert set(FIGURES) <= set(model_names())
    assert len(FIGURES) >= 40
    assert sum(bool(figures.active) for figures in FIGURES.values()) >= 25


@pytest.mark.parametrize(
    ("count", "figure", "is_it"),
    [
        (36.6e9, "37B", True),
        (36.4e9, "37B", False),
        (37.9e9, "37B", True),
        (38.0e9, "37B", False),
        (116.83e9, "116.83B", True),
        (118.1e9, "116.83B", False),
        (1.573e12, "1.6T", True),
        (1.54e12, "1.6T", False),
        (494e6, "490M", True),
    ],
)
def test_a_count_agrees_as_far_as_the_digits_of_a_figure_go(count: float, figure: str, is_it: bool) -> None:
    assert agrees(count, figure) is is_it


@pytest.mark.parametrize("name", ["deepseek-v3", "gpt-oss-20b", "kimi-k3", "qwen3.5-35b-a3b"])
def test_one_layer_of_each_sort_counts_as_all_do(name: str) -> None:
    model = load(name)
    graphs = [model.build(Workload(stage="decode", context=context, batch=1)) for context in (1, 4096, 8192)]
    found = counts(model)
    assert found.parameters == pytest.approx(parameters(graphs[0]), rel=1e-12)
    assert found.active == pytest.approx(active_parameters(graphs[0]), rel=1e-12)
    assert sum(found.stored.values()) == pytest.approx(found.parameters, rel=1e-12)
    growth = (kv_footprint_bytes(graphs[2]) - kv_footprint_bytes(graphs[1])) / 4096
    assert found.kv_bytes_per_token == pytest.approx(growth, rel=1e-9)
    assert found.kept_bytes == pytest.approx(kv_footprint_bytes(graphs[2]) - 8192 * growth, abs=1)


# Layers that see the whole context × what they keep of a token × bytes of an element.
_PER_TOKEN: dict[str, int] = {
    "llama-2-7b": 32 * 2 * 32 * 128 * 2,
    "llama-2-70b": 80 * 2 * 8 * 128 * 2,
    "llama-3.1-8b": 131_072,  # The Llama 3 herd of models, arXiv 2407.21783: 32 layers, 8 KV heads of 128, in BF16
    "llama-3.1-70b": 327_680,
    "llama-3.1-405b": 516_096,
    "llama-4-scout": 48 * 2 * 8 * 128 * 2 // 4,  # the other layers see chunks of 8,192
    "mixtral-8x7b": 131_072,
    "mistral-7b": 131_072,
    "qwen2.5-7b": 28 * 2 * 4 * 128 * 2,
    "qwen2.5-72b": 80 * 2 * 8 * 128 * 2,
    "qwen3-8b": 36 * 2 * 8 * 128 * 2,
    "qwen3-235b-a22b": 94 * 2 * 4 * 128 * 2,
    "qwen3-next-80b-a3b": 12 * 2 * 2 * 256 * 2,
    "qwen3.5-397b-a17b": 15 * 2 * 2 * 256 * 2,
    "gemma-2-9b": 21 * 2 * 8 * 256 * 2,
    "gemma-3-27b": 10 * 2 * 16 * 128 * 2,  # layers 6, 12, … 60 of 62
    "gpt-oss-120b": 18 * 2 * 8 * 64 * 2,
    "gpt-oss-20b": 12 * 2 * 8 * 64 * 2,
    "deepseek-v2": 60 * (512 + 64) * 2,
    "deepseek-v3": 70_272,  # 61 × 576 × 2: DeepSeek-V3 insights, arXiv 2505.09343, table 1 has 70.272 KB
    "deepseek-v3.2": 61 * ((512 + 64) * 2 + 128),  # an index key in FP8 beside each entry
    "kimi-k2": 61 * (512 + 64) * 2,
    "kimi-linear-48b-a3b": 7 * (512 + 64) * 2,
    "glm-4.5": 92 * 2 * 8 * 128 * 2,
    "minimax-m1": 10 * 2 * 8 * 128 * 2,
    "minimax-m2.5": 62 * 2 * 8 * 128 * 2,
    "phi-4": 40 * 2 * 10 * 128 * 2,
}


@pytest.mark.parametrize(("name", "expected"), _PER_TOKEN.items())
def test_bytes_of_cache_per_token(name: str, expected: int) -> None:
    assert counts(load(name)).kv_bytes_per_token == expected


def test_fp8_halves_a_cache_but_not_index_keys() -> None:
    assert counts(load("llama-3.1-8b:kv=fp8")).kv_bytes_per_token == 65_536
    assert counts(load("deepseek-v3.2:kv=fp8")).kv_bytes_per_token == 61 * (576 + 128)


_KEPT: dict[str, int] = {
    "gpt-oss-120b": 18 * 128 * 2 * 8 * 64 * 2,
    "gemma-3-27b": 52 * 1024 * 2 * 16 * 128 * 2,
    "minimax-m1": 70 * 64 * 128 * 128 * 4,
    # States of 32 value heads, and four inputs of the convolutions of q, k and v.
    "qwen3-next-80b-a3b": 36 * (32 * 128 * 128 + 4 * (2 * 16 * 128 + 32 * 128)) * 2,
    "kimi-linear-48b-a3b": 20 * (32 * 128 * 128 + 4 * 3 * 32 * 128) * 2,
    "llama-3.1-8b": 0,
}


@pytest.mark.parametrize(("name", "expected"), _KEPT.items())
def test_bytes_of_windows_and_states(name: str, expected: int) -> None:
    assert counts(load(name)).kept_bytes == expected


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [("gpt-oss-120b", 65.3), ("gpt-oss-20b", 13.8), ("kimi-k2.5", 594.0), ("kimi-k2", 1029.0), ("llama-3.1-8b", 16.06)],
)
def test_bytes_of_weights_are_those_of_the_checkpoints(name: str, gigabytes: float) -> None:
    """As the hub lists the files, to 1%."""
    from rooflang.models.measure import weight_bytes

    graph: Any = load(name).build(Workload(stage="decode", context=1, batch=1))
    assert weight_bytes(graph) / 1e9 == pytest.approx(gigabytes, rel=0.01)
