"""Pieces of a `config.json` that mean the same in several families."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
CountOrNone = Annotated[int, Meta(ge=0)]


class Fp8Blocks(msgspec.Struct, frozen=True, kw_only=True):
    """`quantization_config`: FP8 weights with a scale per 128 × 128 block."""

    quant_method: Literal["fp8"]
    weight_block_size: tuple[Literal[128], Literal[128]] = (128, 128)


def check_experts(chosen: int, experts: int, field: str) -> None:
    """Raise `ValueError` where a token would go to more experts than there are."""
    if chosen > experts:
        raise ValueError(f"{field} = {chosen} of {experts} experts")


def expert_words(chosen: int, experts: int, shared: int) -> str:
    """A mixture of experts in words."""
    return f"top-{chosen} of {experts} experts" + (f" + {shared} shared" if shared else "")
