"""What the config record derives from the fields of the file."""

from __future__ import annotations

import msgspec
import pytest

from rooflang.models import load
from rooflang.models.deepseek_v4 import Config


def config(name: str) -> Config:
    found = load(name).config
    assert isinstance(found, Config)
    return found


def test_the_multi_token_prediction_layer_is_left_out() -> None:
    flash, pro = config("deepseek-v4-flash"), config("deepseek-v4-pro")
    assert (len(flash.compress_ratios), len(flash.ratios)) == (44, 43)
    assert flash.ratios == (0, 0, *(4, 128) * 20, 4)
    assert pro.ratios == (128, 128, *(4, 128) * 29, 4)


@pytest.mark.parametrize(
    ("expert_dtype", "quantized", "linear", "experts"),
    [
        ("fp4", True, "fp8_block", "mxfp4"),
        ("fp8", True, "fp8_block", "fp8_block"),
        (None, True, "fp8_block", "fp8_block"),
        ("fp4", False, "bf16", "mxfp4"),
        (None, False, "bf16", "bf16"),
    ],
)
def test_weight_dtypes(expert_dtype: str | None, quantized: bool, linear: str, experts: str) -> None:
    flash = config("deepseek-v4-flash")
    changed = msgspec.structs.replace(
        flash, expert_dtype=expert_dtype, quantization_config=flash.quantization_config if quantized else None
    )
    assert (changed.linear_dtype, changed.expert_weight_dtype) == (linear, experts)


def test_words() -> None:
    pro = config("deepseek-v4-pro")
    assert pro.attention_words == "31 × window 128 + context/128, 30 × window 128 + top-1024 of context/4"
    assert msgspec.structs.replace(pro, num_hash_layers=0, n_shared_experts=0).ffn_words == "top-6 of 384 experts"
