"""Pieces that configs share."""

from __future__ import annotations

import msgspec
import pytest

from rooflang.models.common.config import Fp8Blocks, check_experts, expert_words


def test_only_fp8_in_blocks_of_128() -> None:
    assert msgspec.convert({"quant_method": "fp8", "fmt": "e4m3"}, Fp8Blocks).weight_block_size == (128, 128)
    for fields in ({"quant_method": "awq"}, {"quant_method": "fp8", "weight_block_size": [64, 64]}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(fields, Fp8Blocks)


def test_experts() -> None:
    check_experts(8, 8, "k")
    with pytest.raises(ValueError, match="k = 9 of 8 experts"):
        check_experts(9, 8, "k")
    assert expert_words(6, 256, 1) == "top-6 of 256 experts + 1 shared"
    assert expert_words(6, 256, 0) == "top-6 of 256 experts"
