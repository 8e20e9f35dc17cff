"""The fields of a DeepSeek V4 `config.json` that decide shapes and dtypes."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from rooflang.models.common.config import Count, CountOrNone, Fp8Blocks, TextConfig, check_experts, expert_words

#: Layers of this ratio are CSA: overlapping compression and an indexer (DeepSeek-V4 report, section 2.3.1). Any other
#: ratio above 0 is HCA: plain groups, all of them attended (2.3.2). Ratio 0 attends the window only.
INDEXED_RATIO = 4

_EXPERT_DTYPES = {"fp4": "mxfp4", "fp8": "fp8_block", "bf16": "bf16"}


class DeepseekV4Config(TextConfig, frozen=True, kw_only=True):
    """What the builder reads, under the names of the file. Other keys are ignored: they set numerics (rotary bases,
    epsilons, clamps, how scores are normalised), training or the tokenizer, and move no shape."""

    model_type: Literal["deepseek_v4"]
    num_attention_heads: Count
    num_key_value_heads: Literal[1]  # every query head reads the same KV entries
    head_dim: Count
    q_lora_rank: Count
    o_groups: Count
    o_lora_rank: Count
    sliding_window: Count
    compress_ratios: tuple[CountOrNone, ...]
    index_n_heads: Count
    index_head_dim: Count
    index_topk: Count

    n_routed_experts: Count
    n_shared_experts: CountOrNone
    num_experts_per_tok: Count
    moe_intermediate_size: Count
    num_hash_layers: CountOrNone = 0
    num_nextn_predict_layers: CountOrNone = 0

    hc_mult: Count
    expert_dtype: Literal["fp4", "fp8", "bf16"] | None = None
    quantization_config: Fp8Blocks | None = None

    def __post_init__(self) -> None:
        if len(self.compress_ratios) < self.num_hidden_layers:
            raise ValueError(
                f"compress_ratios has {len(self.compress_ratios)} entries for {self.num_hidden_layers} layers"
            )
        if self.num_attention_heads % self.o_groups:
            raise ValueError(f"{self.num_attention_heads} heads do not divide into o_groups = {self.o_groups}")
        check_experts(self.num_experts_per_tok, self.n_routed_experts, "num_experts_per_tok")

    @property
    def ratios(self) -> tuple[int, ...]:
        """Compression ratio of each layer. The file may list more: the entries after these are the MTP layers'."""
        return self.compress_ratios[: self.num_hidden_layers]

    @property
    def draft_layers(self) -> int:
        """Layers that draft tokens (multi-token prediction)."""
        return self.num_nextn_predict_layers

    def mtp_ratio(self, number: int) -> int:
        """Compression ratio of a multi-token-prediction layer; window only where the file lists none."""
        return dict(enumerate(self.compress_ratios)).get(self.num_hidden_layers + number, 0)

    @property
    def linear_dtype(self) -> str:
        """Dtype of the weights that the file's quantization covers."""
        return "fp8_block" if self.quantization_config else "bf16"

    @property
    def expert_weight_dtype(self) -> str:
        """Dtype of the routed experts: their own where the file names one."""
        return _EXPERT_DTYPES[self.expert_dtype] if self.expert_dtype else self.linear_dtype

    @property
    def attention_words(self) -> str:
        """The layers' attention in words, counted."""
        return ", ".join(f"{count} × {self._ratio_words(ratio)}" for ratio, count in Counter(self.ratios).items())

    def _ratio_words(self, ratio: int) -> str:
        window = f"window {self.sliding_window}"
        if ratio == 0:
            return window
        chosen = f"top-{self.index_topk} of " if ratio == INDEXED_RATIO else ""
        return f"{window} + {chosen}context/{ratio}"

    @property
    def ffn_words(self) -> str:
        """The layers' feed-forward part in words."""
        hashed = f", the first {self.num_hash_layers} layers by token id" if self.num_hash_layers else ""
        return expert_words(self.num_experts_per_tok, self.n_routed_experts, self.n_shared_experts) + hashed
