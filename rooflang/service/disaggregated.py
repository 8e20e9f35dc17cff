"""Each stage on GPUs of its own: prompts are run by some replicas, their caches are sent to others, which decode.

The service takes as many requests as the slower of both pools. The first token comes with the cache: its time is that
of gathering the prompts of a step, of running and of sending them. What is sent crosses one fabric, over the links of
all GPUs of the smaller of both replicas: the innermost that joins all GPUs that are used, or between two kinds of GPUs
the outermost. No pool sends or takes more than its links carry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rooflang.hw import Level
from rooflang.service.demand import ROUNDING, Demand, replicas
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
    split = _split(prefill, decode, requests_per_s, demand, room, cache_bytes)
    if split is None:
        return None
    prefills, decodes, rate = split
    fabric = _fabric(prefill, decode, prefills * prefill.gpus + decodes * decode.gpus)
    sent = cache_bytes * prefill.point.batch / (min(prefill.gpus, decode.gpus) * fabric.bytes_per_s)
    transfer_s = sent + fabric.latency_s
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
    prefill: Choice, decode: Choice, requests_per_s: float, demand: Demand, room: Room, cache_bytes: float
) -> tuple[int, int, float] | None:
    """Replicas of both stages, and their rate."""
    best: tuple[tuple[bool, float, float], tuple[int, int, float]] | None = None
    for prefills in range(1, room.prefill_replicas(prefill.gpus) + 1):
        most = room.decode_replicas(prefills * prefill.gpus, decode.gpus)
        if not most:
            break
        offered = prefills * prefill.passes_per_s
        wanted = offered if demand.rate_per_s is None else min(offered, demand.rate_per_s)
        decodes = min(most, max(1, replicas(wanted, requests_per_s)))
        pools = prefills * prefill.gpus, decodes * decode.gpus
        carried = min(pools) * _fabric(prefill, decode, sum(pools)).bytes_per_s
        rate = min(offered, decodes * requests_per_s, carried / cache_bytes if cache_bytes else math.inf)
        enough = demand.rate_per_s is not None and rate >= demand.rate_per_s * (1.0 - ROUNDING)
        rank = (enough, -sum(pools), rate) if enough else (enough, rate, -sum(pools))
        if best is None or rank > best[0]:
            best = (rank, (prefills, decodes, rate))
    return best and best[1]


def _fabric(prefill: Choice, decode: Choice, gpus: int) -> Level:
    """The level that joins that many GPUs of both pools; between two kinds, the slower of their outermost ones."""
    one, other = prefill.problem.cluster, decode.problem.cluster
    if one.platform != other.platform:
        ends = one.levels[-1], other.levels[-1]
        slower = min(ends, key=lambda level: level.bytes_per_s)
        return replace(slower, latency_s=max(level.latency_s for level in ends))
    domain, spine = one.platform.scale_up.largest, one.platform.spine
    depth = 0 if gpus <= domain else 1 if spine and gpus <= domain * spine.domains else -1
    return min((one.levels[depth], other.levels[depth]), key=lambda level: level.bytes_per_s)
