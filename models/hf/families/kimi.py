"""Kimi Linear: three layers of Kimi Delta Attention, then one of latent attention without rotation."""

from __future__ import annotations

from rooflang.models.hf.families.common import decoder, dense, experts, latent
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder, Delta, FeedForward, Layer


def _kimi_linear(f: Fields) -> Decoder:
    """Layers are counted from 1 in `linear_attn_config` (Kimi Linear, arXiv 2510.26692)."""
    linear, layers = f.part("linear_attn_config"), f.layers()
    heads, width = linear.count("num_heads"), linear.count("head_dim")
    delta = Delta(
        heads=heads,
        key_heads=heads,
        key=width,
        value=width,
        taps=linear.count("short_conv_kernel_size"),
        decay="channel",
        decay_rank=width,
        gate_rank=width,
    )
    full = linear.counts("full_attn_layers")
    far = latent(f)
    first, every = f.count("first_k_dense_replace", 0, least=0), f.count("moe_layer_freq", 1)
    shared = f.count("num_shared_experts", 0, least=0) * f.count("moe_intermediate_size")
    routed = experts(f, "num_experts", shared=shared, choice_bias=True, scores="sigmoid")
    plain = dense(f)
    ffns: list[FeedForward] = [routed if i >= first and i % every == 0 else plain for i in range(layers)]
    f.skip("mla_use_nope", "use_grouped_topk", "num_nextn_predict_layers", "rope_theta", "head_dim")
    return decoder(f, [Layer(attention=far if i + 1 in full else delta, ffn=ffns[i]) for i in range(layers)])


READERS = {"kimi_linear": _kimi_linear}
