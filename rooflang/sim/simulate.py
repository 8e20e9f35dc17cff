"""`simulate`: run one plan and account for it."""

from __future__ import annotations

from rooflang.cost.model import CostModel
from rooflang.place.lower import PlacedGraph
from rooflang.sim.build import Built, build
from rooflang.sim.engine import Timeline, run
from rooflang.sim.memory import live_at_peak, overflows, peak_bytes
from rooflang.sim.result import Overlap, SimResult, StageResult

_NAMED = 5


def simulate(
    placed: PlacedGraph, cost: CostModel, *, tokens: int, overlap: Overlap = "perfect", check_memory: bool = True
) -> SimResult:
    """Simulate one step of a placed graph at one batch size; `tokens` is how many tokens a request gains (1 in decode).

    Raises `CapacityError`, naming the largest tensors, when the plan does not fit and `check_memory` is set.
    """
    built = build(placed, cost)
    timeline = run(built.program)
    if check_memory:
        for overflow in overflows(built.program, timeline):
            raise overflow.error(where=placed.plan.origin)
    peaks = peak_bytes(built.program, timeline)
    stages = tuple(_account(built, timeline, stage, int(peaks[stage])) for stage in range(len(placed.plan.stages)))
    slowest = max(range(len(stages)), key=lambda s: stages[s].span_s(overlap))
    fullest = max(range(len(stages)), key=lambda s: stages[s].peak_bytes)
    step_s = stages[slowest].span_s(overlap)
    batch = float(cost.sizes.get("batch", 1))
    return SimResult(
        overlap=overlap,
        step_s=step_s,
        tok_s_gpu=batch * tokens / (step_s * cost.cluster.gpus),
        tok_s_user=tokens / (step_s * len(stages)),
        stages=stages,
        peak_bytes=stages[fullest].peak_bytes,
        capacity_bytes=round(cost.cluster.device.hbm_bytes),
        largest=live_at_peak(built.program, timeline, fullest)[:_NAMED],
        groups_s=_groups(built, timeline, slowest),
        bottleneck=_bottleneck(stages[slowest]),
        events=timeline.events,
        operators=built.program.op_count,
    )


def _account(built: Built, timeline: Timeline, stage: int, peak: int) -> StageResult:
    first, last, local, exposed, compute = float("inf"), 0.0, 0.0, 0.0, 0.0
    levels: dict[str, float] = {}
    starts, ends = timeline.start_s.tolist(), timeline.end_s.tolist()
    for op, cost, start, end in zip(built.ops, built.costs, starts, ends):
        if op.stage != stage:
            continue
        first, last = min(first, start), max(last, end)
        own = float(cost.local_s)
        local += own
        exposed += max(0.0, (end - start) - own) if cost.levels_s else 0.0
        compute += own if cost.compute_s >= cost.memory_s else 0.0
        for name, seconds in cost.levels_s.items():
            levels[name] = levels.get(name, 0.0) + float(seconds)
    return StageResult(
        elapsed_s=last - first,
        local_s=local,
        exposed_s=exposed,
        compute_bound_s=compute,
        levels_s=levels,
        peak_bytes=peak,
    )


def _groups(built: Built, timeline: Timeline, stage: int) -> dict[str, float]:
    out: dict[str, float] = {}
    for op, start, end in zip(built.ops, timeline.start_s.tolist(), timeline.end_s.tolist()):
        if op.stage == stage and end > start:
            out[op.group] = out.get(op.group, 0.0) + (end - start)
    return dict(sorted(out.items(), key=lambda item: -item[1]))


def _bottleneck(stage: StageResult) -> str:
    """The resource that the stage waits for most: a fabric level, HBM bandwidth, or compute."""
    if stage.exposed_s > stage.local_s:
        return max(stage.levels_s, key=lambda name: stage.levels_s[name])
    return "compute" if stage.compute_bound_s > stage.local_s / 2 else "memory"
