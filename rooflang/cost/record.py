"""`Cost`: what one operator or transfer costs on one rank."""

from __future__ import annotations

from dataclasses import dataclass

from rooflang.ir.tensor import Num


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Uncontended costs on one rank; every field is a number, or an array with one entry per batch size.

    Seconds: compute Σ FLOPs/peak, memory Σ bytes/bandwidth, network without α, and α itself. An impossible layout (sizes
    that do not divide) costs infinity.
    `live_bytes` is what the operator's operands and output occupy while it runs (without resident leaves).
    """

    compute_s: Num = 0.0
    memory_s: Num = 0.0
    network_s: Num = 0.0
    alpha_s: Num = 0.0
    live_bytes: Num = 0.0

    @property
    def local_s(self) -> Num:
        """C: local time, the larger of compute and memory."""
        import numpy

        return numpy.maximum(self.compute_s, self.memory_s)

    @property
    def exposed_s(self) -> Num:
        """N: network time that the operator's own local time does not hide."""
        import numpy

        return numpy.maximum(0.0, self.network_s + self.alpha_s - self.local_s)

    @property
    def serial_s(self) -> Num:
        """Duration when nothing else runs: max(compute, memory, network + α) = C + N."""
        return self.local_s + self.exposed_s
