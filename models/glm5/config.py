"""The fields of a GLM-5 `config.json` that decide shapes and dtypes."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any, Literal

from rooflang.models.common.config import Count, CountOrNone, TextConfig, check_experts, expert_words
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.quantisation import Formats, read_formats

_ROUTER_DTYPES = {"float32": "fp32", "bfloat16": "bf16"}


Indexer = Literal["full", "shared"]


class Glm5Config(TextConfig, frozen=True, kw_only=True, dict=True):
    """What the builder reads, under the names of the file. Other keys are ignored: they set numerics (rotary bases,
    epsilons, how scores are normalised), training or the tokenizer, and move no shape."""

    model_type: Literal["glm_moe_dsa"]
    num_attention_heads: Count
    q_lora_rank: Count
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: CountOrNone
    v_head_dim: Count
    index_n_heads: Count
    index_head_dim: Count
    index_topk: Count
    indexer_types: tuple[Indexer, ...] | None = None

    intermediate_size: Count
    first_k_dense_replace: CountOrNone = 0
    n_routed_experts: Count
    n_shared_experts: CountOrNone
    num_experts_per_tok: Count
    moe_intermediate_size: Count
    num_nextn_predict_layers: CountOrNone = 0
    index_share_for_mtp_iteration: bool = False
    moe_router_dtype: Literal["float32", "bfloat16"] = "bfloat16"

    quantization_config: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if len(self.indexers) < self.num_hidden_layers:
            raise ValueError(f"indexer_types has {len(self.indexers)} entries for {self.num_hidden_layers} layers")
        if self.indexers[0] == "shared":
            raise ValueError("indexer_types begins with 'shared': the first layer has no indexer before it")
        check_experts(self.num_experts_per_tok, self.n_routed_experts, "num_experts_per_tok")
        assert self.formats  # reads them, and refuses what is not known

    @property
    def indexers(self) -> tuple[Indexer, ...]:
        """For each layer whether it has an indexer, or attends what the indexer before it has chosen."""
        full: Indexer = "full"
        return self.indexer_types[: self.num_hidden_layers] if self.indexer_types else (full,) * self.num_hidden_layers

    @property
    def draft_layers(self) -> int:
        """Layers that draft tokens (multi-token prediction)."""
        return self.num_nextn_predict_layers

    @cached_property
    def formats(self) -> Formats:
        """Dtypes of the weights of every part of a layer. Those of the cache are the paper's."""
        stated = {"quantization_config": self.quantization_config}
        return read_formats(Fields(stated, "config.json"), self.num_hidden_layers)

    @property
    def router_dtype(self) -> str:
        """Dtype of the router's weights."""
        return _ROUTER_DTYPES[self.moe_router_dtype]

    @property
    def attention_words(self) -> str:
        """The layers' attention in words, counted."""
        counts = Counter(self.indexers)
        shared = f", {counts['shared']} × the same choice again" if counts["shared"] else ""
        return f"{counts['full']} × top-{self.index_topk} of context{shared}"

    @property
    def ffn_words(self) -> str:
        """The layers' feed-forward part in words."""
        dense = f", the first {self.first_k_dense_replace} layers dense" if self.first_k_dense_replace else ""
        return expert_words(self.num_experts_per_tok, self.n_routed_experts, self.n_shared_experts) + dense
