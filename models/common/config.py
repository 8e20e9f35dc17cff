"""Pieces of a `config.json` that mean the same in several families."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

#: Far above every model there is, and small enough to be worked with: the largest of any size, and of layers.
LARGEST, MOST_LAYERS = 2**32, 10_000

Count = Annotated[int, Meta(ge=1, le=LARGEST)]
CountOrNone = Annotated[int, Meta(ge=0, le=LARGEST)]
Layers = Annotated[int, Meta(ge=1, le=MOST_LAYERS)]


class TextConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What every language model has."""

    vocab_size: Count
    hidden_size: Count
    num_hidden_layers: Layers
    max_position_embeddings: Count
    tie_word_embeddings: bool = False

    @property
    def layers(self) -> int:
        """Number of layers, those for multi-token prediction not counted."""
        return self.num_hidden_layers

    @property
    def max_context(self) -> int:
        """Longest context in tokens."""
        return self.max_position_embeddings


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
