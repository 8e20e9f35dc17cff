"""Both stages on the same GPUs: prompts go first, decode steps run in between.

A replica that takes r requests a second spends the share r/R_p of its time on prompts, of which it could run R_p a
second, and needs r·steps/R_d for their tokens, of which it could make R_d a second. At its full rate both fill its
time, and a decode step is stretched by the prompts that come in between. A prompt waits until its step is full, and for
the decode step under way, at worst a whole one. What a prefill step works on has to fit beside all caches.
"""

from __future__ import annotations

from rooflang.service.demand import Demand
from rooflang.service.offer import Choice, Offer, Pool


def together(prefill: Choice, decode: Choice, demand: Demand, replicas: int, admits: int) -> Offer:
    """The offer of `replicas` copies of GPUs that run one plan for prompts and one for tokens, at their full rate."""
    tokens_per_s = decode.passes_per_s * decode.problem.tokens
    rate = 1.0 / (1.0 / prefill.passes_per_s + demand.steps / tokens_per_s)
    return Offer(
        mode="aggregated",
        prefill=Pool(replicas=replicas, choice=prefill),
        decode=Pool(replicas=replicas, choice=decode, admits=admits),
        rate_per_s=rate * replicas,
        ttft_s=prefill.gathering_s(rate) + decode.step_s + prefill.latency_s,
        tpot_s=decode.latency_s / (1.0 - rate / prefill.passes_per_s),
        transfer_s=0.0,
        output_tok_s=rate * replicas * demand.osl,
    )


def replicas_for(prefill: Choice, decode: Choice, demand: Demand, gpus: int) -> int:
    """As many replicas as the GPUs give, or with a rate as few as reach it."""
    most = gpus // decode.gpus
    if demand.rate_per_s is None:
        return most
    alone = together(prefill, decode, demand, 1, 0)
    return min(most, max(1, demand.replicas(alone.rate_per_s)))
