"""From a timeline to what each pipeline stage did: E, C and N, the network by level, the peak of its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rooflang.cost.record import Cost
from rooflang.sim.build import Built
from rooflang.sim.csr import IntArray
from rooflang.sim.engine import Timeline
from rooflang.sim.result import Overlap, StageResult


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """A rank class of a stage: when it began, and its result as if it were the stage."""

    first_s: float
    result: StageResult


def stage_results(built: Built, timeline: Timeline, peaks: IntArray, overlap: Overlap) -> tuple[StageResult, ...]:
    """One result a stage: that of the rank class that ends last, counted from the first start of the stage.

    Peaks are those of the fullest class. With one stream an operator's network time that shows is what its run took
    beyond its own local time, waiting for slower members included; with two streams runs stretch each other, and it is
    what the operator would show alone.
    """
    times = timeline.start_s.tolist(), timeline.end_s.tolist()
    out = []
    for stage in range(max(built.ranks.stage) + 1):
        numbers = built.ranks.of_stage(stage)
        shares = [_share(built.work[c], times, int(peaks[c]), overlap) for c in numbers if built.work[c]]
        first_s = min(share.first_s for share in shares)
        last = max(shares, key=lambda share: share.first_s + share.result.span_s(overlap))
        waited_s = last.first_s - first_s
        out.append(
            replace(
                last.result,
                elapsed_s=last.result.elapsed_s + waited_s,
                peak_bytes=max(int(peaks[c]) for c in numbers),
            )
        )
    return tuple(out)


def _share(
    work: tuple[tuple[int, Cost], ...], times: tuple[list[float], list[float]], peak: int, overlap: Overlap
) -> _Share:
    starts, ends = times
    first, last, local, exposed, compute = float("inf"), 0.0, 0.0, 0.0, 0.0
    levels: dict[str, float] = {}
    for op, cost in work:
        start, end = starts[op], ends[op]
        first, last = min(first, start), max(last, end)
        own = max(cost.compute_s, cost.memory_s)
        local += own
        compute += own if cost.compute_s >= cost.memory_s else 0.0
        if cost.levels_s:
            took = end - start if overlap != "two-batch" else max(cost.levels_s.values()) + cost.alpha_s
            exposed += max(0.0, took - own)
            for name, seconds in cost.levels_s.items():
                levels[name] = levels.get(name, 0.0) + seconds
    result = StageResult(
        elapsed_s=last - first,
        local_s=local,
        exposed_s=exposed,
        compute_bound_s=compute,
        levels_s=levels,
        peak_bytes=peak,
    )
    return _Share(first_s=first, result=result)


def groups_s(built: Built, timeline: Timeline, stage: int) -> Mapping[str, float]:
    """Seconds by group of operators, largest first, on the first rank class of a stage; runs that overlap both
    count."""
    (number, *_) = (c for c in built.ranks.of_stage(stage) if built.work[c])
    took = (timeline.end_s - timeline.start_s).tolist()
    out: dict[str, float] = {}
    for op, _ in built.work[number]:
        if took[op] > 0:
            group = built.ops[op].group
            out[group] = out.get(group, 0.0) + took[op]
    return dict(sorted(out.items(), key=lambda item: -item[1]))
