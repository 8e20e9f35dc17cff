"""gpt-oss: layers of a window and of the whole context in turn, attention sinks, a mixture of experts with biases."""

from __future__ import annotations

from dataclasses import replace

from rooflang.models.hf.families.common import FULL, SLIDING, attention, decoder, experts, schedule
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder, Layer


def _gpt_oss(f: Fields) -> Decoder:
    far = attention(f, sinks=True)
    near = replace(far, window=f.count("sliding_window"))
    ffn = experts(f, "num_local_experts", "intermediate_size", bias=True, router_bias=True, activation="swiglu_oai")
    default = [SLIDING if i % 2 == 0 else FULL for i in range(f.layers())]
    f.skip("experts_per_token", "swiglu_limit", "initial_context_length")
    sorts = schedule(f, (FULL, SLIDING), default)
    return decoder(f, [Layer(attention=far if sort == FULL else near, ffn=ffn) for sort in sorts])


READERS = {"gpt_oss": _gpt_oss}
