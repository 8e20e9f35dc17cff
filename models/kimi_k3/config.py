"""The fields of a Kimi K3 `config.json` that decide shapes and dtypes."""

from __future__ import annotations

from typing import Literal

import msgspec

from rooflang.models.common.config import Count, CountOrNone, Layers, TextConfig, check_experts, expert_words


class Mxfp4(msgspec.Struct, frozen=True, kw_only=True):
    """`quantization_config`: MXFP4 weights of the routed experts, the only ones that the published file quantizes."""

    format: Literal["mxfp4-pack-quantized"]


class LinearAttention(msgspec.Struct, frozen=True, kw_only=True):
    """`linear_attn_config`: the layers of Kimi Delta Attention. Layers are counted from 1."""

    num_heads: Count
    head_dim: Count
    short_conv_kernel_size: Count
    full_attn_layers: tuple[Count, ...]
    gate_lower_bound: float
    use_full_rank_gate: Literal[True]


class KimiLinearConfig(TextConfig, frozen=True, kw_only=True):
    """`text_config`: what the builder reads, under the names of the file. Other keys are ignored: they set numerics,
    training or the tokenizer, and move no shape."""

    model_type: Literal["kimi_linear"]
    attn_res_block_size: Count

    linear_attn_config: LinearAttention
    num_attention_heads: Count
    q_lora_rank: Count
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: CountOrNone
    v_head_dim: Count
    mla_use_output_gate: bool

    intermediate_size: Count
    first_k_dense_replace: CountOrNone
    num_experts: Count
    num_shared_experts: CountOrNone
    num_experts_per_token: Count
    moe_intermediate_size: Count
    routed_expert_hidden_size: Count
    latent_moe_use_norm: bool

    quantization_config: Mxfp4 | None = None

    def __post_init__(self) -> None:
        check_experts(self.num_experts_per_token, self.num_experts, "num_experts_per_token")

    def latent(self, layer: int) -> bool:
        """Does this layer, counted from 0, attend its whole context?"""
        return layer + 1 in self.linear_attn_config.full_attn_layers

    @property
    def expert_dtype(self) -> str:
        """Dtype of the routed experts' weights."""
        return "mxfp4" if self.quantization_config else "bf16"


class VisionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`vision_config`: widths of the vision encoder and of the projector."""

    patch_size: Count
    merge_kernel_size: tuple[Count, Count]
    vt_hidden_size: Count
    vt_intermediate_size: Count
    vt_num_attention_heads: Count
    vt_num_hidden_layers: Layers
    qkv_hidden_size: Count
    mm_hidden_size: Count

    def __post_init__(self) -> None:
        if self.qkv_hidden_size % self.vt_num_attention_heads:
            raise ValueError(f"qkv_hidden_size = {self.qkv_hidden_size} for {self.vt_num_attention_heads} heads")


class KimiK3Config(msgspec.Struct, frozen=True, kw_only=True):
    """A multimodal file: its language model, and its vision encoder, which is no part of a step on text."""

    model_type: Literal["kimi_k3"]
    text_config: KimiLinearConfig
    vision_config: VisionConfig | None = None

    @property
    def sees(self) -> bool:
        """Does the model have a vision encoder?"""
        return self.vision_config is not None

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self.text_config.layers

    @property
    def max_context(self) -> int:
        """Longest context in tokens."""
        return self.text_config.max_context

    @property
    def attention_words(self) -> str:
        """The layers' attention in words, counted."""
        latent = sum(self.text_config.latent(layer) for layer in range(self.layers))
        heads = self.text_config.linear_attn_config.num_heads
        return f"{self.layers - latent} × state of {heads} heads, {latent} × context"

    @property
    def ffn_words(self) -> str:
        """The layers' feed-forward part in words."""
        c = self.text_config
        dense = f", the first {c.first_k_dense_replace} layers dense" if c.first_k_dense_replace else ""
        return expert_words(c.num_experts_per_token, c.num_experts, c.num_shared_experts) + dense
