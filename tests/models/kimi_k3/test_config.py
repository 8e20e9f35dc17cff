"""What a Kimi K3 config may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rooflang.models
from rooflang.errors import ModelError
from rooflang.models import load

K3 = Path(rooflang.models.__file__).parent / "configs" / "kimi-k3.json"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kv_lora_rank": None}, "kv_lora_rank"),
        ({"linear_attn_config": {"num_heads": 96}}, "text_config.linear_attn_config"),
        ({"num_experts_per_token": 1000}, "1000 of 896 experts"),
        ({"quantization_config": {"format": "int-quantized"}}, "quantization_config.format"),
        ({"model_type": "kimi_square"}, "model_type"),
    ],
)
def test_unusable_configs_are_refused_with_the_field(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    fields = json.loads(K3.read_text(encoding="utf-8"))
    text = {k: v for k, v in {**fields["text_config"], **changes}.items() if v is not None}
    path = tmp_path / "k3.json"
    path.write_text(json.dumps({**fields, "text_config": text}), encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        load(path)
    assert says in str(caught.value)


def test_layers_are_counted_from_one_in_the_file() -> None:
    config: Any = load("kimi-k3").config
    latent = [layer for layer in range(config.layers) if config.text_config.latent(layer)]
    assert latent == [*range(3, 92, 4), 92]
    assert config.max_context == 1048576
