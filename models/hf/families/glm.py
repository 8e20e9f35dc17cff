"""GLM-4 and GLM-4.5: biased projections and half-rotated heads; norms on both sides, or a mixture of experts."""

from __future__ import annotations

from rooflang.models.hf.families.common import alike, attention, decoder, dense, experts
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder, FeedForward, Grouped, Layer


def _attention(f: Fields, *, normed: bool = False) -> Grouped:
    bias = f.flag("attention_bias", True)
    return attention(f, qkv_bias=bias, out_bias=False, qk_norm="head" if normed else "none")


def _glm(f: Fields) -> Decoder:
    return decoder(f, alike(f, Layer(attention=_attention(f), ffn=dense(f))))


def _glm4(f: Fields) -> Decoder:
    return decoder(f, alike(f, Layer(attention=_attention(f), ffn=dense(f))), sandwich=True)


def _glm4_moe(f: Fields) -> Decoder:
    own = _attention(f, normed=f.flag("use_qk_norm", False))
    first, layers = f.count("first_k_dense_replace", 0, least=0), f.layers()
    shared = f.count("n_shared_experts", 0, least=0) * f.count("moe_intermediate_size")
    routed = experts(f, "n_routed_experts", shared=shared, choice_bias=True, scores="sigmoid")
    plain = dense(f)
    ffns: list[FeedForward] = [plain if i < first else routed for i in range(layers)]
    drafts = f.count("num_nextn_predict_layers", 0, least=0)
    return decoder(f, [Layer(attention=own, ffn=ffn) for ffn in ffns], draft_layers=drafts)


READERS = {"glm": _glm, "glm4": _glm4, "glm4_moe": _glm4_moe}
