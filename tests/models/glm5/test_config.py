"""What a GLM-5 config may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rooflang.models
from rooflang.errors import ModelError
from rooflang.models import load

GLM = Path(rooflang.models.__file__).parent / "configs" / "glm-5.3.json"


def write(path: Path, **changes: Any) -> Path:
    fields = {**json.loads(GLM.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({k: v for k, v in fields.items() if v is not None}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kv_lora_rank": None}, "kv_lora_rank"),
        ({"indexer_types": ["full"] * 5}, "5 entries for 78 layers"),
        ({"indexer_types": ["shared"] * 78}, "begins with 'shared'"),
        ({"indexer_types": ["none"] * 78}, "indexer_types"),
        ({"num_experts_per_tok": 300}, "300 of 256 experts"),
        ({"moe_router_dtype": "float64"}, "moe_router_dtype"),
        ({"quantization_config": {"quant_method": "magic"}}, "quant_method"),
    ],
)
def test_unusable_configs_are_refused_with_the_field(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        load(write(tmp_path / "glm.json", **changes))


def test_a_file_without_quantization_is_bf16(tmp_path: Path) -> None:
    config: Any = load(write(tmp_path / "glm.json", quantization_config=None)).config
    assert config.formats.of("experts", 5) == "bf16"
    assert load("glm-5.3").max_context == 1048576


def test_parts_that_are_left_out_of_a_quantization(tmp_path: Path) -> None:
    stated = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "model.layers.*.self_attn*"]}
    config: Any = load(write(tmp_path / "glm.json", quantization_config=stated)).config
    assert (config.formats.of("attention", 5), config.formats.of("experts", 5)) == ("bf16", "nvfp4")
