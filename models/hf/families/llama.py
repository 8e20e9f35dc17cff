"""Llama 2, 3 and 4, and what follows their plan: Mistral, Mixtral, Phi 3 and 4."""

from __future__ import annotations

from dataclasses import replace

from rooflang.models.hf.families.common import alike, attention, decoder, dense, experts
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder, Layer


def _llama(f: Fields) -> Decoder:
    ffn = dense(f, bias=f.flag("mlp_bias", False))
    return decoder(f, alike(f, Layer(attention=attention(f), ffn=ffn)))


def _mistral(f: Fields) -> Decoder:
    window = f.count("sliding_window", 0, least=0)
    return decoder(f, alike(f, Layer(attention=attention(f, window=window), ffn=dense(f))))


def _mixtral(f: Fields) -> Decoder:
    window = f.count("sliding_window", 0, least=0)
    ffn = experts(f, "num_local_experts", "intermediate_size")
    return decoder(f, alike(f, Layer(attention=attention(f, window=window), ffn=ffn)))


def _phi3(f: Fields) -> Decoder:
    window = f.count("sliding_window", 0, least=0)
    if window >= f.count("max_position_embeddings"):
        window = 0
    f.skip("embd_layer", "mlp_bias")
    return decoder(f, alike(f, Layer(attention=attention(f, window=window), ffn=dense(f))))


def _phimoe(f: Fields) -> Decoder:
    window = f.count("sliding_window", 0, least=0)
    if window >= f.count("max_position_embeddings"):
        window = 0
    f.skip("input_jitter_noise")
    layer = Layer(attention=attention(f, window=window), ffn=experts(f, "num_local_experts", "intermediate_size"))
    return decoder(f, alike(f, layer), norm="layer", head_bias=f.flag("lm_head_bias", False))


def _llama4(f: Fields) -> Decoder:
    """Chunked attention with rotation, and every fourth layer none of both; experts in every n-th layer."""
    layers = f.layers()
    chunk = f.count("attention_chunk_size", 0, least=0)
    near = attention(f, chunk=chunk, qk_norm="plain" if f.flag("use_qk_norm", True) else "none")
    far = replace(near, rotary=0, chunk=0, qk_norm="none")
    step = f.count("no_rope_layer_interval", 4)
    rotated = f.counts("no_rope_layers", ()) or tuple(int((i + 1) % step != 0) for i in range(layers))
    f.skip("attn_scale", "attn_temperature_tuning", "floor_scale", "for_llm_compressor", "layer_types", "rope")
    every = f.count("interleave_moe_layer_step", 1)
    sparse = f.counts("moe_layers", ()) or tuple(range(every - 1, layers, every))
    routed = experts(f, "num_local_experts", "intermediate_size", shared=f.count("intermediate_size"))
    plain = dense(f, "intermediate_size_mlp")
    if len(rotated) < layers:
        raise f.fail(f"no_rope_layers has {len(rotated)} entries for {layers} layers", expected="one for each layer")
    stack = [Layer(attention=near if rotated[i] else far, ffn=routed if i in sparse else plain) for i in range(layers)]
    return decoder(f, stack)


READERS = {
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "phi3": _phi3,
    "phimoe": _phimoe,
    "llama4_text": _llama4,
}
