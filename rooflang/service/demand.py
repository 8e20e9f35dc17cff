"""What is asked of a service: lengths of requests, how many of them, how fast."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rooflang.errors import ValueRangeError
from rooflang.units import positive, show_seconds

#: Contexts are rounded up to whole pages of a KV cache, which also lets them be cut.
PAGE = 256

#: Relative rounding of rates: a target that is missed by less is met.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Requests of `isl` prompt tokens and `osl` output tokens. Targets, none where None: seconds to the first token at
    most, seconds for each further one at most, requests per second at least. Raises `ValueRangeError`."""

    isl: int
    osl: int
    ttft_s: float | None = None
    tpot_s: float | None = None
    rate_per_s: float | None = None

    def __post_init__(self) -> None:
        for flag, tokens, least in (("--isl", self.isl, 1), ("--osl", self.osl, 2)):
            if not isinstance(tokens, int) or tokens < least:
                raise ValueRangeError(f"{tokens!r} tokens", where=flag, expected=f"a whole number, {least} or more")
        for flag, value in (("--ttft", self.ttft_s), ("--tpot", self.tpot_s), ("--rate", self.rate_per_s)):
            if value is not None:
                positive(value, where=flag)

    @property
    def steps(self) -> int:
        """Decode steps of a request: its first token comes out of the prompt's own step."""
        return self.osl - 1

    @property
    def prompt(self) -> int:
        """Context of a prefill step, in whole pages."""
        return pages(self.isl)

    @property
    def longest(self) -> int:
        """Context at the last token, in whole pages: what a cache must have room for."""
        return pages(self.isl + self.osl)

    @property
    def mean(self) -> int:
        """Context of a decode step on average over a request's tokens, in whole pages."""
        return pages(self.isl + self.osl // 2)

    def replicas(self, rate_per_s: float) -> int:
        """Replicas of that rate each that together reach the one asked for; 0 where none is."""
        return replicas(self.rate_per_s or 0.0, rate_per_s)

    def met(self, *, ttft_s: float, tpot_s: float, rate_per_s: float) -> bool:
        """Are all targets met?"""
        missed = self.misses(ttft_s=ttft_s, tpot_s=tpot_s, rate_per_s=rate_per_s)
        return all(miss <= 1.0 + ROUNDING for miss in missed)

    def misses(self, *, ttft_s: float, tpot_s: float, rate_per_s: float) -> Iterator[float]:
        """By which factor each target is missed; 1 or less: it is met."""
        if self.ttft_s is not None:
            yield ttft_s / self.ttft_s
        if self.tpot_s is not None:
            yield tpot_s / self.tpot_s
        if self.rate_per_s is not None:
            yield self.rate_per_s / rate_per_s

    def words(self) -> str:
        """The targets in words."""
        parts = [f"a first token within {show_seconds(self.ttft_s)}"] if self.ttft_s else []
        parts += [f"at most {show_seconds(self.tpot_s)} for each further one"] if self.tpot_s else []
        parts += [f"{self.rate_per_s:g} requests a second"] if self.rate_per_s else []
        return " and ".join(parts) or "no target"

    def inputs(self) -> dict[str, Any]:
        """For the hash of a plan's inputs."""
        return {name: getattr(self, name) for name in self.__slots__}


def replicas(wanted_per_s: float, rate_per_s: float) -> int:
    """How many of a rate each reach the one that is wanted."""
    return math.ceil(wanted_per_s / rate_per_s * (1.0 - ROUNDING))


def pages(tokens: int) -> int:
    """Tokens rounded up to whole pages."""
    return -(-tokens // PAGE) * PAGE
