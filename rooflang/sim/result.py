"""What a simulation tells: step time, throughput, where the time goes, what fills the memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Overlap = Literal["perfect", "none", "two-batch"]


def waves(overlap: Overlap) -> int:
    """Into how many parts a step cuts its batch, so that one computes while the other is on the network."""
    return 2 if overlap == "two-batch" else 1


#: Relative rounding of sums of some thousand costs.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """One pipeline stage, per GPU. E is from its first start to its last end, C its local time (compute or memory), N
    the network time that an operator's own local time does not hide."""

    elapsed_s: float
    local_s: float
    exposed_s: float
    compute_bound_s: float
    levels_s: Mapping[str, float]
    peak_bytes: int

    def span_s(self, overlap: Overlap) -> float:
        """E without overlap; E − min(C, N) when compute and communication overlap perfectly: the shorter one
        disappears. What a plan's own streams overlap already does not disappear once more: no step is shorter than
        C and N, whichever is longer."""
        if overlap != "perfect":
            return self.elapsed_s
        projected_s, longer_s = self.elapsed_s - min(self.local_s, self.exposed_s), max(self.local_s, self.exposed_s)
        if projected_s >= longer_s * (1.0 - ROUNDING):
            return projected_s
        return min(self.elapsed_s, longer_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimResult:
    """One simulated point.

    `step_s` is the time of the slowest stage; a step of a request passes all stages, so interactivity is tokens /
    (step_s · stages). `groups_s` says, for the slowest stage, how many seconds the operators of each group took.
    """

    overlap: Overlap
    step_s: float
    tok_s_gpu: float
    tok_s_user: float
    stages: tuple[StageResult, ...]
    peak_bytes: int
    capacity_bytes: int
    largest: tuple[tuple[str, int], ...]
    groups_s: Mapping[str, float]
    bottleneck: str
    events: int
    operators: int

    @property
    def fits(self) -> bool:
        """True when every memory holds its peak."""
        return self.peak_bytes <= self.capacity_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """One plan under every overlap mode: `floor` (none), `schedule` (two-batch) and `ceiling` (perfect) of throughput.

    The schedule is what two interleaved micro-batches really reach. It lies below the ceiling, and below the floor too
    where halving the batch costs more than overlap brings: weights are read once for each half. Where the batch cannot
    be halved it is None, and `refusal` says why.
    """

    floor: SimResult
    schedule: SimResult | None
    ceiling: SimResult
    refusal: str = ""

    @property
    def best(self) -> SimResult:
        """The faster of the two that can be run: floor or schedule."""
        if self.schedule is None or self.schedule.step_s >= self.floor.step_s:
            return self.floor
        return self.schedule
