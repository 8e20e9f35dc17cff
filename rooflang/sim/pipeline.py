"""Pipelines as they run: micro-batches on their way through the stages, fill and drain, one shot and steady state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.errors import ValueRangeError
from rooflang.place.lower import PlacedGraph
from rooflang.sim.book import Book
from rooflang.sim.build import Built, Scene, assemble
from rooflang.sim.cache import TIMELINES
from rooflang.sim.csr import FloatArray
from rooflang.sim.engine import Timeline
from rooflang.sim.fleet import Override
from rooflang.sim.memory import overflows, peak_bytes
from rooflang.sim.schedule import BATCH, Issue, one_batch, split_batch, two_batches

#: Cycles that differ by less, relatively, are the steady state: sends that meet collectives on a link shift them a bit.
_STEADY = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """A pipeline run of `micro_batches` micro-batches of `requests` requests each, `steps` steps of each.

    `first_s` is the latency of the first micro-batch, alone at the head; `fill_s` when the last stage begins, `drain_s`
    how long the first stage has nothing left to do before the end, `total_s` the whole run. `cycle_s` is, in the steady
    state, the time from one step of a micro-batch to its next (with one step: what all micro-batches take at the rate
    at which they leave), and `steady` whether the later cycles agree within 1%. `idle[s]` is the part of `total_s` in
    which stage s does nothing; `peak_bytes[s]` includes the caches of all micro-batches.

    `tok_s_gpu` and `tok_s_user` are those of the steady state; `run_tok_s_gpu` counts fill and drain too.
    """

    micro_batches: int
    requests: int
    steps: int
    first_s: float
    fill_s: float
    drain_s: float
    total_s: float
    cycle_s: float
    steady: bool
    idle: tuple[float, ...]
    peak_bytes: tuple[int, ...]
    capacity_bytes: int
    tok_s_gpu: float
    tok_s_user: float
    run_tok_s_gpu: float
    operators: int


def simulate_pipeline(
    placed: PlacedGraph,
    cost: CostModel,
    *,
    tokens: float,
    micro_batches: int | None = None,
    steps: int = 4,
    two_batch: bool = False,
    check_memory: bool = True,
    overrides: Sequence[Override] = (),
    explicit: bool = False,
) -> PipelineResult:
    """Run the batch of `cost` as equal micro-batches (default: one a stage) that follow each other through the stages.

    A step of a micro-batch begins when its last one has ended, as a token is needed for the next: in decode, `steps`
    steps show the steady state, a prefill is one step. On a stage micro-batches run first come, first served, each
    operator after the other, or with `two_batch` the halves of a micro-batch interleaved on two streams.

    Raises `PlacementError` for a batch that does not divide, `CapacityError` when the caches of all micro-batches and
    what is alive beside them do not fit, `ValueRangeError` for less than one step or micro-batch.
    """
    count = len(placed.plan.stages) if micro_batches is None else micro_batches
    if count < 1 or steps < 1:
        raise ValueRangeError(
            f"{count} micro-batches, {steps} steps", where="pipeline", expected="at least one of each"
        )
    parts = 2 if two_batch else 1
    micro = split_batch(cost, count * parts)
    scene = Scene.of(placed, micro, overrides=overrides, explicit=explicit)
    waves = count * parts
    built = assemble(
        placed,
        scene,
        _issues(placed, scene.book, count, steps, two_batch),
        waves_resident=waves,
        begins_after={wave: wave - waves for wave in range(waves, waves * steps)},
        control=placed.plan.control,
    )
    timeline = TIMELINES.run(built.program)
    if check_memory:
        for overflow in overflows(built.program, timeline):
            raise overflow.error(where=placed.plan.origin)
    return _result(built, timeline, cost, tokens, count, steps, parts)


def _issues(placed: PlacedGraph, book: Book, count: int, steps: int, two_batch: bool) -> Iterator[Issue]:
    """Step by step, micro-batch by micro-batch, all stages."""
    halves = two_batches(placed, book) if two_batch else []
    for number in range(count * steps):
        if two_batch:
            yield from ((2 * number + half, op, stream) for half, op, stream in halves)
        else:
            yield from one_batch(placed, number)


def _result(
    built: Built, timeline: Timeline, cost: CostModel, tokens: float, count: int, steps: int, parts: int
) -> PipelineResult:
    ends = _ends(built, timeline).reshape(steps, count, parts).max(axis=2)
    stages = range(max(built.ranks.stage) + 1)
    spans = [_busy(built, timeline, stage) for stage in stages]
    total_s = timeline.makespan_s
    cycle_s, steady = _cycle(ends)
    peaks = peak_bytes(built.program, timeline)
    batch, gpus = float(cost.sizes[BATCH]), cost.cluster.gpus
    return PipelineResult(
        micro_batches=count,
        requests=int(cost.sizes[BATCH]) // count,
        steps=steps,
        first_s=float(ends[0, 0]),
        fill_s=spans[-1][0],
        drain_s=total_s - spans[0][1],
        total_s=total_s,
        cycle_s=cycle_s,
        steady=steady,
        idle=tuple(1.0 - busy_s / total_s for _, _, busy_s in spans),
        peak_bytes=tuple(max(int(peaks[c]) for c in built.ranks.of_stage(stage)) for stage in stages),
        capacity_bytes=int(built.program.memory_capacity_bytes.min()),
        tok_s_gpu=batch * tokens / (cycle_s * gpus),
        tok_s_user=tokens / (cycle_s if steps > 1 else float(ends[0, 0])),
        run_tok_s_gpu=batch * tokens * steps / (total_s * gpus),
        operators=built.program.op_count,
    )


def _ends(built: Built, timeline: Timeline) -> FloatArray:
    """When each wave ended, shape (waves,)."""
    waves = np.array(built.waves)
    ends = np.zeros(int(waves.max()) + 1, np.float64)
    np.maximum.at(ends, waves, timeline.end_s)
    return ends


def _cycle(ends: FloatArray) -> tuple[float, bool]:
    """(time of a cycle, whether it repeats) from the ends of every step of every micro-batch."""
    steps, count = ends.shape
    if steps > 1:
        return _settled(np.diff(ends[:, -1]))
    if count == 1:
        return float(ends[0, 0]), True
    gap_s, steady = _settled(np.diff(ends[0]))
    return gap_s * count, steady


def _settled(times_s: FloatArray) -> tuple[float, bool]:
    """The mean of the later half, and whether all of that half is about the same."""
    later = times_s[len(times_s) // 2 :]
    mean_s = float(later.mean())
    return mean_s, len(later) > 1 and float(np.ptp(later)) <= _STEADY * mean_s


def _busy(built: Built, timeline: Timeline, stage: int) -> tuple[float, float, float]:
    """(first start, last end, seconds in which something runs) of a stage, on its busiest rank class."""
    found = [_union(timeline, [op for op, _ in built.work[c]]) for c in built.ranks.of_stage(stage) if built.work[c]]
    return min(f[0] for f in found), max(f[1] for f in found), max(f[2] for f in found)


def _union(timeline: Timeline, ops: Sequence[int]) -> tuple[float, float, float]:
    starts, ends = timeline.start_s[ops], timeline.end_s[ops]
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)
    free_s = np.maximum(starts[1:] - reached[:-1], 0.0).sum()
    return float(starts[0]), float(reached[-1]), float(reached[-1] - starts[0] - free_s)
