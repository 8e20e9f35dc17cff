"""What readers of several families share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rooflang.models.hf.fields import Fields
from rooflang.models.hf.quantisation import read_formats
from rooflang.models.hf.records import Decoder, Dense, Experts, Grouped, Latent, Layer

#: Activations by their names in the files.
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
}

FULL, SLIDING, CHUNKED, LINEAR = "full_attention", "sliding_attention", "chunked_attention", "linear_attention"


def activation(f: Fields, default: str = "silu") -> str:
    """The activation of the feed-forward parts."""
    key = f.first("hidden_activation", "hidden_act")
    return _ACTIVATIONS[f.one_of(key, tuple(_ACTIVATIONS), default)]


def rotary(f: Fields, width: int, default: float = 1.0) -> int:
    """Elements of a head that are rotated."""
    factor = f.number("partial_rotary_factor", default) if f.has("partial_rotary_factor") else default
    if f.has("rope_parameters"):
        factor = f.part("rope_parameters").number("partial_rotary_factor", factor)
    return int(width * factor)


def attention(f: Fields, **changes: Any) -> Grouped:
    """Softmax attention of the usual fields: heads, key-value heads and their width."""
    heads = f.count("num_attention_heads")
    kv_heads = f.count("num_key_value_heads", heads)
    if heads % kv_heads:
        raise f.fail(
            f"{heads} heads do not divide over num_key_value_heads = {kv_heads}", expected="a divisor of the heads"
        )
    width = changes.pop("width", 0) or f.count("head_dim", max(1, f.count("hidden_size") // heads))
    bias = f.flag("attention_bias", False)
    own: dict[str, Any] = {"rotary": rotary(f, width), "qkv_bias": bias, "out_bias": bias}
    return Grouped(heads=heads, kv_heads=kv_heads, head_dim=width, value_dim=width, **{**own, **changes})


def latent(f: Fields, **changes: Any) -> Latent:
    """Latent attention in the fields of DeepSeek."""
    f.skip("num_key_value_heads", "attention_bias", "head_dim", "qk_head_dim")
    return Latent(
        heads=f.count("num_attention_heads"),
        q_rank=f.count("q_lora_rank", 0, least=0),
        kv_rank=f.count("kv_lora_rank"),
        nope=f.count("qk_nope_head_dim"),
        rope=f.count("qk_rope_head_dim", least=0),
        value=f.count("v_head_dim"),
        **changes,
    )


def dense(f: Fields, key: str = "intermediate_size", **changes: Any) -> Dense:
    """A gated feed-forward part."""
    return Dense(width=f.count(key), **{"activation": activation(f), **changes})


def experts(f: Fields, count: str, width: str = "moe_intermediate_size", **changes: Any) -> Experts:
    """A mixture of experts; `count` and `width` are the keys of their number and width."""
    number, chosen = f.count(count), f.count(f.first("num_experts_per_tok", "num_experts_per_token"))
    if chosen > number:
        raise f.fail(f"a token goes to {chosen} of {number} experts", expected=f"at most {number}")
    f.skip("norm_topk_prob", "scoring_func", "topk_method", "n_group", "topk_group", "routed_scaling_factor")
    f.skip("moe_renormalize", "num_expert_group", "moe_router_activation_func", "seq_aux", "aux_loss_alpha")
    return Experts(count=number, chosen=chosen, width=f.count(width), **{"activation": activation(f), **changes})


def schedule(f: Fields, known: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """The sort of every layer, from `layer_types` where the file has it."""
    layers = f.layers()
    sorts = f.words("layer_types", known, tuple(default))
    if len(sorts) < layers:
        raise f.fail(f"layer_types has {len(sorts)} entries for {layers} layers", expected="one for each layer")
    return sorts[:layers]


def decoder(f: Fields, stack: Sequence[Layer], **changes: Any) -> Decoder:
    """The decoder of these layers, with what every file says of vocabulary, width and length."""
    longest = f.first("max_position_embeddings", "model_max_length", "seq_length")
    own: dict[str, Any] = {"tied": f.flag("tie_word_embeddings", False)}
    return Decoder(
        model_type=f.text("model_type"),
        vocab=f.count("vocab_size"),
        hidden=f.count("hidden_size"),
        max_context=f.count(longest),
        stack=tuple(stack),
        formats=read_formats(f, len(stack)),
        **{**own, **changes},
    )


def alike(f: Fields, layer: Layer) -> tuple[Layer, ...]:
    """All layers, where they are the same."""
    return (layer,) * f.layers()
