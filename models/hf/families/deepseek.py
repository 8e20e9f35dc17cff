"""DeepSeek V2, V3, R1 and V3.2, Kimi K2 and GLM-4.7-Flash: latent attention, dense layers first, then experts."""

from __future__ import annotations

from rooflang.models.hf.families.common import decoder, dense, experts, latent
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder, FeedForward, Index, Latent, Layer


def _deepseek(f: Fields, own: Latent, *, correction: bool) -> Decoder:
    width = f.count("moe_intermediate_size")
    shared = f.count("n_shared_experts", 0, least=0) * width
    scores = "sigmoid" if correction else "softmax"
    routed = experts(f, "n_routed_experts", shared=shared, choice_bias=correction, scores=scores)
    first, every = f.count("first_k_dense_replace", 0, least=0), f.count("moe_layer_freq", 1)
    plain = dense(f)
    layers = f.layers()
    ffns: list[FeedForward] = [routed if i >= first and i % every == 0 else plain for i in range(layers)]
    f.skip("ep_size", "aux_loss_alpha", "seq_aux")
    drafts = f.count("num_nextn_predict_layers", 0, least=0)
    return decoder(f, [Layer(attention=own, ffn=ffn) for ffn in ffns], draft_layers=drafts)


def _v2(f: Fields) -> Decoder:
    return _deepseek(f, latent(f), correction=False)


def _v3(f: Fields) -> Decoder:
    """The router's choice is corrected by a number per expert (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)."""
    return _deepseek(f, latent(f), correction=True)


def _v32(f: Fields) -> Decoder:
    index = Index(heads=f.count("index_n_heads"), width=f.count("index_head_dim"), topk=f.count("index_topk"))
    return _deepseek(f, latent(f, index=index), correction=True)


READERS = {
    "deepseek_v2": _v2,
    "deepseek_v3": _v3,
    "kimi_k2": _v3,
    "glm4_moe_lite": _v3,
    "deepseek_v32": _v32,
}
