"""Formats of weights and caches, from the configs of every method and by flag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rooflang.errors import ModelError, UnknownNameError
from rooflang.ir import Role
from rooflang.models import Workload, load
from rooflang.models.hf import read

Fields = dict[str, Any]

_GROUPS = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}


def group(**weights: Any) -> Fields:
    """compressed-tensors with these weights."""
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


@pytest.mark.parametrize(
    ("stated", "dtype"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}, "fp8_block"),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8"),
        ({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}, "int4_g128z"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True}, "int4_g32z"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8"),
        (group(num_bits=4, type="int", group_size=32, symmetric=True), "int4_g32"),
        (group(num_bits=4, type="float", group_size=16), "nvfp4"),
        (group(num_bits=4, type="float", group_size=32), "mxfp4"),
        (group(num_bits=8, type="float", strategy="block"), "fp8_block"),
        ({"quant_method": "compressed-tensors", "config_groups": _GROUPS}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_algo": "FP8", "ignore": ["lm_head"]}, "fp8"),
    ],
)
def test_every_method(llama: Fields, stated: Fields, dtype: str) -> None:
    formats = read({**llama, "quantization_config": stated}, "config.json").formats
    assert {formats.of("attention", 0), formats.of("dense", 1)} == {dtype}
    assert (formats.plain, formats.head, formats.cache) == ("bf16", "bf16", "bf16")


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"quant_method": "magic"}, "$.quantization_config.quant_method is 'magic'"),
        ({}, "no $.quantization_config.quant_method"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "weight_block_size is [64, 64]"),
        ({"quant_method": "awq", "bits": 3, "group_size": 128}, "integers of 3 bits in groups of 128"),
        ({"quant_method": "compressed-tensors"}, "no config_groups"),
        ({"quant_method": "fp8", "ignored_layers": "all"}, "ignored_layers is 'all'"),
        ({"quant_method": "modelopt", "quant_algo": "INT2"}, "quant_algo is 'INT2'"),
    ],
)
def test_what_is_not_known_is_refused(llama: Fields, stated: Fields, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        read({**llama, "quantization_config": stated}, "config.json")
    assert says in caught.value.what


@pytest.mark.parametrize(
    "pattern",
    [
        "model.layers.1.self_attn",
        "model.layers.1.*",
        "re:.*layers\\.1\\.self_attn.*",
        "model.layers.1.self_attn.q_proj",
    ],
)
def test_parts_of_layers_may_be_left_out(llama: Fields, pattern: str) -> None:
    stated = {"quant_method": "fp8", "modules_to_not_convert": [pattern, "lm_head", "re:(broken"]}
    formats = read({**llama, "quantization_config": stated}, "config.json").formats
    assert (formats.of("attention", 0), formats.of("attention", 1)) == ("fp8", "bf16")


def test_mixed_precision_lists_its_modules(llama: Fields) -> None:
    listed = {
        "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
        "model.language_model.layers.1.mlp.gate_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
    }
    stated = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": listed}
    formats = read({**llama, "quantization_config": stated}, "config.json").formats
    assert [formats.of("attention", i) for i in range(2)] == ["fp8", "bf16"]
    assert [formats.of("dense", i) for i in range(2)] == ["bf16", "nvfp4"]


@pytest.mark.parametrize(
    "scheme", [{"kv_cache_quant_algo": "FP8"}, {"kv_cache_scheme": {"num_bits": 8, "type": "float"}}]
)
def test_caches_may_be_stated_to_be_fp8(llama: Fields, scheme: Fields) -> None:
    stated = {"quant_method": "modelopt", "quant_algo": "FP8", **scheme}
    assert read({**llama, "quantization_config": stated}, "config.json").formats.cache == "fp8"


def test_a_file_of_modelopt_beside_the_config(llama: Fields, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(llama), encoding="utf-8")
    beside = tmp_path / "hf_quant_config.json"
    beside.write_text('{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}', encoding="utf-8")
    formats = load(tmp_path).config.formats  # type: ignore[attr-defined]
    assert (formats.dense, formats.cache) == ("nvfp4", "fp8")
    beside.write_text("[]", encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        load(tmp_path)
    assert caught.value.where == str(beside)


def test_experts_alone_are_quantised_in_gpt_oss() -> None:
    graph = load("gpt-oss-20b").build(Workload(stage="decode", context=16, batch=1))
    stored = {t.name.rpartition(".")[2]: t.dtype for t in graph.leaves if t.role is Role.WEIGHT}
    assert (stored["experts_w13"], stored["experts_w2"]) == ("mxfp4", "mxfp4")
    assert {stored[name] for name in ("wq", "wo", "router_w", "table", "head_w", "experts_b2")} == {"bf16"}


def test_flags_change_what_a_config_says() -> None:
    model = load("llama-3.1-8b")
    assert model.stored() == model
    graph = model.stored(weights="fp8", kv="fp8").build(Workload(stage="decode", context=16, batch=1))
    assert graph.op_by_name["layers.0.q"].peak == graph.op_by_name["layers.0.attention"].peak == "fp8"
    stored = {t.name: t.dtype for t in graph.leaves}
    assert (stored["layers.0.keys_cache"], stored["embed.table"], stored["head.head_w"]) == ("fp8", "bf16", "bf16")
    assert load("deepseek-v3").stored(weights="bf16").describe().formats == "100.0% bf16"


def test_flags_that_cannot_be_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown weight format 'fp7'"):
        load("llama-3.1-8b").stored(weights="fp7")
    with pytest.raises(UnknownNameError, match="unknown cache format 'int4'"):
        load("llama-3.1-8b").stored(kv="int4")
    with pytest.raises(ModelError) as caught:
        load("deepseek-v4-pro").stored(kv="fp8")
    assert caught.value.where == "--kv"
