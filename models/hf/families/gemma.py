"""Gemma 1 to 3: GELU, embeddings scaled by √hidden, a tied head; from Gemma 2 on layers of a window among the others,
and norms on both sides of a sub-layer."""

from __future__ import annotations

from dataclasses import replace

from rooflang.models.hf.families.common import FULL, SLIDING, alike, attention, decoder, dense, schedule
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder, Grouped, Layer

#: What transformers takes for granted where a published Gemma 3 file says nothing (`Gemma3TextConfig`).
_GEMMA3 = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
}


def _gemma(f: Fields) -> Decoder:
    tied = f.flag("tie_word_embeddings", True)
    layer = Layer(attention=attention(f), ffn=dense(f, activation="gelu"))
    f.skip("hidden_act", "hidden_activation")
    return decoder(f, alike(f, layer), tied=tied, scaled=True)


def _gemma2(f: Fields) -> Decoder:
    """Windows in every other layer, the first one among them."""
    far = attention(f, softcap=f.number("attn_logit_softcapping", 0.0))
    cap = f.number("final_logit_softcapping", 0.0)
    return _windowed(f, far=far, every=2, cap=cap)


def _gemma3(f: Fields) -> Decoder:
    """Five layers of a window, then one that sees all."""
    f.assume(_GEMMA3)
    f.skip("attn_logit_softcapping", "final_logit_softcapping", "use_bidirectional_attention")
    every = f.count(f.first("_sliding_window_pattern", "sliding_window_pattern"), 6)
    return _windowed(f, far=attention(f, qk_norm="head"), every=every, cap=0.0)


def _windowed(f: Fields, *, far: Grouped, every: int, cap: float) -> Decoder:
    near = replace(far, window=f.count("sliding_window"))
    ffn = dense(f, activation="gelu")
    default = [FULL if (i + 1) % every == 0 else SLIDING for i in range(f.layers())]
    f.skip("hidden_act", "hidden_activation", "query_pre_attn_scalar", "cache_implementation")
    stack = [Layer(attention=far if sort == FULL else near, ffn=ffn) for sort in schedule(f, (FULL, SLIDING), default)]
    tied = f.flag("tie_word_embeddings", True)
    return decoder(f, stack, tied=tied, scaled=True, sandwich=True, logit_cap=cap)


READERS = {"gemma": _gemma, "gemma2": _gemma2, "gemma3_text": _gemma3, "gemma3": _gemma3}
