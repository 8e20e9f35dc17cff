"""`simulate`: run one plan and account for it."""

from __future__ import annotations

from collections.abc import Sequence

from rooflang.cost.model import CostModel
from rooflang.errors import CapacityError, PlacementError
from rooflang.place.lower import PlacedGraph
from rooflang.sim.account import groups_s, stage_results
from rooflang.sim.build import Built, ControlEdge, build
from rooflang.sim.cache import TIMELINES
from rooflang.sim.engine import Timeline
from rooflang.sim.fleet import Override
from rooflang.sim.memory import live_at_peak, overflows, peak_bytes
from rooflang.sim.result import Bracket, Overlap, SimResult, StageResult
from rooflang.sim.verdict import refuse_hopeless

_NAMED = 5


def simulate(
    placed: PlacedGraph,
    cost: CostModel,
    *,
    tokens: float,
    overlap: Overlap = "perfect",
    check_memory: bool = True,
    overrides: Sequence[Override] = (),
    uneven: bool = False,
    control: Sequence[ControlEdge] = (),
    explicit: bool = False,
) -> SimResult:
    """Simulate one step of a placed graph at one batch size; `tokens` is how many tokens a request gains (1 in decode).

    `overlap` says how computation and communication share the time: `none`, each operator after the other; `two-batch`,
    two halves of the batch really interleaved on two streams of each device; `perfect`, the run without overlap less
    the smaller of C and N per GPU (the RoofLang paper, arXiv 2609.12551, section on evaluation).

    `overrides` are GPUs and links that are not as the cluster says. With `uneven` extents that do not divide are cut
    into whole elements, fewer on the last ranks; otherwise they are refused. `control` are pairs of operators by name,
    of which the second waits for the first. With `explicit` every rank has operators of its own: the result is the
    same, bit for bit, and takes as many times longer as there are equal ranks.

    Raises `CapacityError`, naming the largest tensors, when the plan does not fit and `check_memory` is set,
    and `PlacementError` for sizes that do not divide.
    """
    if check_memory and not overrides:
        refuse_hopeless(placed.plan, placed.blocks, cost, overlap)
    built = build(placed, cost, overlap=overlap, overrides=overrides, explicit=explicit, uneven=uneven, control=control)
    timeline = _run(built, placed, check_memory)
    return result_of(built, timeline, cost, tokens, overlap)


def bracket(
    placed: PlacedGraph,
    cost: CostModel,
    *,
    tokens: float,
    check_memory: bool = True,
    overrides: Sequence[Override] = (),
) -> Bracket:
    """Floor, schedule and ceiling of a plan: none and perfect overlap from one run, two micro-batches from another.

    Raises as `simulate` does, but for a batch that cannot be halved, or whose halves do not fit: the schedule is None.
    """
    if check_memory and not overrides:
        refuse_hopeless(placed.plan, placed.blocks, cost)
    built = build(placed, cost, overrides=overrides)
    timeline = _run(built, placed, check_memory)
    floor = result_of(built, timeline, cost, tokens, "none")
    ceiling = result_of(built, timeline, cost, tokens, "perfect")
    schedule, refusal = None, ""
    try:
        schedule = simulate(
            placed, cost, tokens=tokens, overlap="two-batch", check_memory=check_memory, overrides=overrides
        )
    except (PlacementError, CapacityError) as error:
        refusal = error.what
    return Bracket(floor=floor, schedule=schedule, ceiling=ceiling, refusal=refusal)


def _run(built: Built, placed: PlacedGraph, check_memory: bool) -> Timeline:
    timeline = TIMELINES.run(built.program)
    if check_memory:
        for overflow in overflows(built.program, timeline):
            raise overflow.error(where=placed.plan.origin)
    return timeline


def result_of(built: Built, timeline: Timeline, cost: CostModel, tokens: float, overlap: Overlap) -> SimResult:
    """The result of a run: none and perfect overlap are two readings of the same one."""
    peaks, capacity = peak_bytes(built.program, timeline), built.program.memory_capacity_bytes
    stages = stage_results(built, timeline, peaks, overlap)
    slowest = max(range(len(stages)), key=lambda s: stages[s].span_s(overlap))
    fullest = max(range(len(built.ranks.stage)), key=lambda memory: int(peaks[memory]) / int(capacity[memory]))
    step_s = stages[slowest].span_s(overlap)
    batch = float(cost.sizes.get("batch", 1))
    return SimResult(
        overlap=overlap,
        step_s=step_s,
        tok_s_gpu=batch * tokens / (step_s * cost.cluster.gpus),
        tok_s_user=tokens / (step_s * len(stages)),
        stages=stages,
        peak_bytes=int(peaks[fullest]),
        capacity_bytes=int(capacity[fullest]),
        largest=live_at_peak(built.program, timeline, fullest)[:_NAMED],
        groups_s=groups_s(built, timeline, slowest),
        bottleneck=_bottleneck(stages[slowest]),
        events=timeline.events,
        operators=built.program.op_count,
    )


def _bottleneck(stage: StageResult) -> str:
    """The resource that the stage waits for most: a fabric level, HBM bandwidth, or compute."""
    if stage.exposed_s > stage.local_s:
        return max(stage.levels_s, key=lambda name: stage.levels_s[name])
    return "compute" if stage.compute_bound_s > stage.local_s / 2 else "memory"
