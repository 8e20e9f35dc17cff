"""`Cost`: what one operator or transfer costs on one rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rooflang.ir.tensor import Num


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Uncontended costs on one rank; every field is a number, or an array with one entry per batch size.

    Seconds: compute Σ FLOPs/peak, memory Σ bytes/bandwidth, network without α, and α itself. An impossible layout
    (sizes that do not divide) costs infinity. `levels_s` splits the network time by fabric level; the slowest level
    counts.
    """

    compute_s: Num = 0.0
    memory_s: Num = 0.0
    levels_s: Mapping[str, Num] = field(default_factory=dict)
    alpha_s: Num = 0.0

    @property
    def network_s(self) -> Num:
        """Transfer time without α: that of the slowest fabric level."""
        total: Num = 0.0
        for seconds in self.levels_s.values():
            total = np.maximum(total, seconds)
        return total

    @property
    def local_s(self) -> Num:
        """C: local time, the larger of compute and memory."""
        return np.maximum(self.compute_s, self.memory_s)

    @property
    def exposed_s(self) -> Num:
        """N: network time that the operator's own local time does not hide, so that C + N = max(compute, memory,
        network + α) is its duration when nothing else runs. An impossible layout has infinite C and no N."""
        return np.maximum(0.0, self.network_s + self.alpha_s - self.local_s)
