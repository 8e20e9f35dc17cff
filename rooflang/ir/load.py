"""How many tokens experts get where some are chosen more often than others (`Assumptions.expert_zipf`,
`Assumptions.expert_histogram`).

A token goes to k of E experts, to expert e with probability π_e; these sum up to k, and none is above 1: what more an
expert would get goes to the others, in proportion. Ranks own experts of consecutive numbers. Of each quantity it is the
rank with the most of it that counts, since the others wait for it.

By Zipf's law the numbers of popular experts are spread as evenly as they can be: the n most popular ones lie on n
ranks, for every n, as a balancer that knows the loads would have it. What is left is what no placement without copies
evens out. Real loads lie by number: give a histogram of them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rooflang.assumptions import Assumptions
from rooflang.errors import ValueRangeError
from rooflang.ir.tensor import Num

Floats = NDArray[np.float64]


def busiest(assumptions: Assumptions, experts: int, chosen: float, parts: float) -> float:
    """Tokens of the rank with most of them over the mean, where the experts lie on that many parts."""
    chances = _chances(assumptions.expert_zipf, assumptions.expert_histogram, experts, chosen)
    # Correctly rounded sums keep the order of the exact ones: fewer ranks are never less even by a rounding.
    return max(map(math.fsum, _by_rank(chances, parts).tolist())) * parts / math.fsum(chances.tolist())


def read_share(assumptions: Assumptions, experts: int, chosen: float, parts: float, tokens: Num) -> Num:
    """Share of a rank's experts that some of the tokens meet, on the rank with most of them.

    `tokens` is a number or an array. Routes are independent, or hit another expert each until all are hit
    (`Assumptions.expert_coverage`).
    """
    many = np.asarray(tokens, np.float64)
    key = (assumptions.expert_zipf, assumptions.expert_histogram, assumptions.expert_coverage)
    return _read(*key, experts, chosen, parts, tuple(many.ravel().tolist())).reshape(many.shape)[()]


@lru_cache(maxsize=4096)
def _read(
    zipf: float,
    histogram: tuple[float, ...],
    coverage: str,
    experts: int,
    chosen: float,
    parts: float,
    tokens: tuple[float, ...],
) -> Floats:
    chances, many = _chances(zipf, histogram, experts, chosen), np.array(tokens)[:, None]
    met = np.minimum(1.0, many * chances) if coverage == "distinct" else 1.0 - (1.0 - chances) ** many
    return np.asarray(_by_rank(met, parts).mean(-1).max(-1))


def _by_rank(each: Floats, parts: float) -> Floats:
    """(…, experts) as (…, ranks, experts of a rank); a last rank that holds fewer is left out."""
    held = max(1, round(each.shape[-1] / parts))
    ranks = each.shape[-1] // held
    return each[..., : ranks * held].reshape(*each.shape[:-1], ranks, held)


@lru_cache(maxsize=64)
def _chances(zipf: float, histogram: tuple[float, ...], experts: int, chosen: float) -> Floats:
    """π by the number of the expert."""
    shares = _histogram(histogram, experts) if histogram else _zipf(zipf, experts)
    chances = np.zeros(experts)
    while True:
        free = chances < 1.0
        chances[free] = shares[free] * ((chosen - (~free).sum()) / shares[free].sum())
        if chances.max() <= 1.0 + 1e-12:
            chances.flags.writeable = False
            return np.minimum(chances, 1.0)
        chances = np.where(chances >= 1.0, 1.0, 0.0)


def _zipf(exponent: float, experts: int) -> Floats:
    """Shares by number: the bits of the place in the order of popularity, backwards, order the numbers."""
    places = np.arange(experts)
    bits = max(1, (experts - 1).bit_length())
    backwards = np.zeros(experts, np.int64)
    for bit in range(bits):
        backwards |= ((places >> bit) & 1) << (bits - 1 - bit)
    return np.asarray(((1.0 + places) ** -exponent)[np.argsort(backwards)])


def _histogram(histogram: tuple[float, ...], experts: int) -> Floats:
    """Shares by number. A small number stands for what was never seen, so that k experts can always be chosen."""
    if len(histogram) != experts:
        raise ValueRangeError(
            f"choices of {len(histogram)} experts, and the model has {experts}",
            where="--expert-histogram",
            expected=f"{experts} numbers",
        )
    counted: Any = np.array(histogram, np.float64)
    return np.asarray(np.maximum(counted / counted.sum(), 1e-12))
