"""Qwen 2 to 3.5: dense, mixtures of experts, and hybrids of gated delta rule and gated attention."""

from __future__ import annotations

from typing import Any

from rooflang.models.hf.families.common import FULL, LINEAR, alike, attention, decoder, dense, experts, schedule
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Attention, Decoder, Delta, FeedForward, Layer


def _window(f: Fields) -> int:
    """The window of all layers; the files name one that is not used."""
    f.skip("sliding_window", "layer_types")
    if f.flag("use_sliding_window", False):
        raise f.fail("use_sliding_window is true", expected="false, as in the published files")
    return 0


def _qwen2(f: Fields) -> Decoder:
    own = attention(f, window=_window(f), qkv_bias=True, out_bias=False)
    return decoder(f, alike(f, Layer(attention=own, ffn=dense(f))))


def _qwen3(f: Fields) -> Decoder:
    own = attention(f, window=_window(f), qk_norm="head")
    return decoder(f, alike(f, Layer(attention=own, ffn=dense(f))))


def _sparse(f: Fields, own: Attention, **changes: Any) -> Decoder:
    """A mixture of experts in every `decoder_sparse_step`-th layer that is not among `mlp_only_layers`."""
    return decoder(f, [Layer(attention=own, ffn=ffn) for ffn in _ffns(f, **changes)])


def _ffns(f: Fields, **changes: Any) -> list[FeedForward]:
    layers, step = f.layers(), f.count("decoder_sparse_step", 1)
    routed, only = experts(f, "num_experts", **changes), f.counts("mlp_only_layers", ())
    ffns: list[FeedForward] = [routed if (i + 1) % step == 0 and i not in only else dense(f) for i in range(layers)]
    f.skip("intermediate_size")  # of no layer, where all have experts
    return ffns


def _shared(f: Fields) -> dict[str, Any]:
    """The shared expert, which a gate of one number per token weighs."""
    return {"shared": f.count("shared_expert_intermediate_size"), "shared_gate": True}


def _qwen2_moe(f: Fields) -> Decoder:
    return _sparse(f, attention(f, window=_window(f), qkv_bias=True, out_bias=False), **_shared(f))


def _qwen3_moe(f: Fields) -> Decoder:
    f.skip("qkv_bias", "shared_expert_intermediate_size", "use_qk_norm")  # in some files; transformers reads none
    return _sparse(f, attention(f, window=_window(f), qk_norm="head"))


def _hybrid(f: Fields) -> list[Attention]:
    """The attention of every layer: three gated delta rules, then gated attention, unless the file lists them."""
    every = f.count("full_attention_interval", 4)
    default = [FULL if (i + 1) % every == 0 else LINEAR for i in range(f.layers())]
    gate = f.flag("attn_output_gate", True)
    full = attention(f, qk_norm="head", gate=gate)
    delta = Delta(
        heads=f.count("linear_num_value_heads"),
        key_heads=f.count("linear_num_key_heads"),
        key=f.count("linear_key_head_dim"),
        value=f.count("linear_value_head_dim"),
        taps=f.count("linear_conv_kernel_dim"),
        decay="head",
        state_dtype="fp32" if f.text("mamba_ssm_dtype", "auto") == "float32" else "bf16",
    )
    if delta.heads % delta.key_heads:
        raise f.fail(f"{delta.heads} value heads do not divide over {delta.key_heads} key heads")
    f.skip("sliding_window", "use_sliding_window", "mtp_num_hidden_layers")
    f.skip("mtp_use_dedicated_embeddings", "head_dim", "mlp_only_layers", "rope_theta")
    return [full if sort == FULL else delta for sort in schedule(f, (FULL, LINEAR), default)]


def _qwen3_next(f: Fields) -> Decoder:
    stack = zip(_hybrid(f), _ffns(f, **_shared(f)), strict=True)
    return decoder(f, [Layer(attention=own, ffn=ffn) for own, ffn in stack])


def _qwen3_5(f: Fields) -> Decoder:
    return decoder(f, [Layer(attention=own, ffn=dense(f)) for own in _hybrid(f)])


READERS = {
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_text": _qwen3,
    "qwen3_vl_moe_text": _qwen3_moe,
    "qwen3_next": _qwen3_next,
    "qwen3_5_text": _qwen3_5,
    "qwen3_5_moe_text": _qwen3_next,
}
