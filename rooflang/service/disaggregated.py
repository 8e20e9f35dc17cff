"""Each stage on GPUs of its own: prompts are run by some replicas, their caches are sent to others, which decode.

The service takes as many requests as the slower of both pools. The first token comes with the cache: its time is that
of gathering the prompts of a step, of running and of sending them. What is sent crosses the outermost fabric once, over
the links of all GPUs of the smaller of both replicas.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflang.service.demand import Demand
from rooflang.service.offer import Choice, Offer, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """GPUs for both stages together, or with `prefill` for each of them."""

    gpus: int
    prefill: int | None = None

    def prefill_replicas(self, size: int) -> int:
        """The most prefill replicas of a size."""
        return (self.gpus if self.prefill is None else self.prefill) // size

    def decode_replicas(self, taken: int, size: int) -> int:
        """The most decode replicas of a size beside prefill replicas on `taken` GPUs."""
        return (self.gpus - (taken if self.prefill is None else 0)) // size


def apart(
    prefill: Choice, decode: Choice, demand: Demand, room: Room, *, cache_bytes: float, admits: int
) -> Offer | None:
    """The best split of the GPUs over replicas of two plans: of the highest rate, or where a rate is asked for the one
    that reaches it on the fewest GPUs. None where there is no room. `cache_bytes` are those of one prompt."""
    requests_per_s = decode.passes_per_s * decode.problem.tokens / demand.steps
    split = _split(prefill, decode, requests_per_s, demand, room)
    if split is None:
        return None
    prefills, decodes = split
    rate = min(prefills * prefill.passes_per_s, decodes * requests_per_s)
    transfer_s = _transfer_s(prefill, decode, cache_bytes)
    return Offer(
        mode="disaggregated",
        prefill=Pool(replicas=prefills, choice=prefill),
        decode=Pool(replicas=decodes, choice=decode, admits=admits),
        rate_per_s=rate,
        ttft_s=prefill.gathering_s(rate / prefills) + prefill.latency_s + transfer_s,
        tpot_s=decode.latency_s,
        transfer_s=transfer_s,
        output_tok_s=rate * demand.osl,
    )


def _split(
    prefill: Choice, decode: Choice, requests_per_s: float, demand: Demand, room: Room
) -> tuple[int, int] | None:
    best: tuple[tuple[bool, float, float], tuple[int, int]] | None = None
    for prefills in range(1, room.prefill_replicas(prefill.gpus) + 1):
        most = room.decode_replicas(prefills * prefill.gpus, decode.gpus)
        if not most:
            break
        offered = prefills * prefill.passes_per_s
        wanted = offered if demand.rate_per_s is None else min(offered, demand.rate_per_s)
        decodes = min(most, max(1, -int(-wanted // requests_per_s)))
        rate = min(offered, decodes * requests_per_s)
        used = prefills * prefill.gpus + decodes * decode.gpus
        enough = demand.rate_per_s is not None and rate >= demand.rate_per_s
        rank = (enough, -used, rate) if enough else (enough, rate, -used)
        if best is None or rank > best[0]:
            best = (rank, (prefills, decodes))
    return best and best[1]


def _transfer_s(prefill: Choice, decode: Choice, cache_bytes: float) -> float:
    """Seconds to send the caches of the prompts of one step."""
    links = min(prefill.gpus, decode.gpus)
    levels = [choice.problem.cluster.levels[-1] for choice in (prefill, decode)]
    rate = links * min(level.bytes_per_s for level in levels)
    return cache_bytes * prefill.point.batch / rate + max(level.latency_s for level in levels)
