"""MiniMax M1 and M2: lightning attention with softmax attention in every eighth layer, or softmax attention alone."""

from __future__ import annotations

from rooflang.models.hf.families.common import FULL, LINEAR, alike, attention, decoder, experts, schedule
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder, Layer, Lightning


def _m1(f: Fields) -> Decoder:
    """`attn_type_list` has a 1 for a layer of softmax attention (MiniMax-01, arXiv 2501.08313)."""
    layers = f.layers()
    full = attention(f, rotary=f.count("rotary_dim", 64, least=0))
    linear = Lightning(heads=full.heads, head_dim=full.head_dim)
    every = [int((i + 1) % 8 == 0) for i in range(layers)]
    sorts = f.counts("attn_type_list", ()) or [
        int(sort == FULL) for sort in schedule(f, (FULL, LINEAR), [FULL if one else LINEAR for one in every])
    ]
    if len(sorts) < layers:
        raise f.fail(f"attn_type_list has {len(sorts)} entries for {layers} layers", expected="one for each layer")
    shared = f.count("shared_intermediate_size", 0, least=0)
    ffn = experts(f, "num_local_experts", "intermediate_size", shared=shared)
    f.skip("postnorm", "shared_moe_mode", "layernorm_full_attention_alpha", "layernorm_full_attention_beta")
    f.skip("layernorm_linear_attention_alpha", "layernorm_linear_attention_beta", "layernorm_mlp_alpha")
    f.skip("layernorm_mlp_beta", "full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor")
    f.skip("linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor", "block_size")
    return decoder(f, [Layer(attention=full if sorts[i] else linear, ffn=ffn) for i in range(layers)])


def _m2(f: Fields) -> Decoder:
    sorts = f.counts("attn_type_list", ())
    if 0 in sorts:
        raise f.fail("attn_type_list has layers of another attention", expected="1 for each layer, as published")
    norm = f.one_of("qk_norm_type", ("per_layer", "per_head"), "per_layer") if f.flag("use_qk_norm", True) else ""
    own = attention(
        f,
        rotary=f.count("rotary_dim", 64, least=0),
        qk_norm={"per_layer": "all", "per_head": "head"}.get(norm, "none"),
    )
    shared = f.count("shared_intermediate_size", 0, least=0)
    ffn = experts(
        f,
        "num_local_experts",
        "intermediate_size",
        shared=shared,
        choice_bias=f.flag("use_routing_bias", True),
        scores="sigmoid",
    )
    f.skip("mtp_transformer_layers", "layernorm_full_attention_beta")
    f.skip("layernorm_linear_attention_beta", "layernorm_mlp_beta")
    drafts = f.count("num_mtp_modules", 0, least=0) if f.flag("use_mtp", False) else 0
    return decoder(f, alike(f, Layer(attention=own, ffn=ffn)), draft_layers=drafts)


READERS = {"minimax_m1": _m1, "minimax": _m1, "minimax_m2": _m2}
