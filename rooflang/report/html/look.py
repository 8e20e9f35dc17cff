"""A closer look at one point: one run of it, read from all sides."""

from __future__ import annotations

import numpy as np

from rooflang.ir.blocks import Blocks
from rooflang.ir.tensor import RESIDENT_ROLES, Role
from rooflang.report.html.drawn import drawn_blocks
from rooflang.report.html.record import Axis, CloseUp, Held, Lane, Span
from rooflang.search.prepared import Prepared
from rooflang.sim.build import Built, build
from rooflang.sim.cache import TIMELINES
from rooflang.sim.engine import Timeline
from rooflang.sim.memory import live_at_peak, peak_bytes
from rooflang.sim.result import Overlap

#: What a role is called.
_ROLES = {Role.WEIGHT: "weights", Role.KV_CACHE: "KV cache", Role.STATE: "state"}
_PASSING = "activations"


def look(prepared: Prepared, *, overlap: Overlap) -> CloseUp:
    """Simulate the plan, and once more for each thing that could be better. Perfect overlap is a projection of the run
    without overlap, which is what blocks and lanes show then."""
    built = build(prepared.placed, prepared.cost, overlap=overlap)
    timeline = TIMELINES.run(built.program)
    blocks = prepared.problem.blocks
    memory, held = _held(built, timeline, blocks)
    return CloseUp(
        explanation=prepared.explain(overlap=overlap),
        axes=tuple(
            Axis(name=axis.name, size=axis.size, levels=tuple(factor.level for factor in axis.factors))
            for axis in prepared.plan.mesh.axes
        ),
        blocks=drawn_blocks(prepared, built, timeline),
        lanes=tuple(_lanes(built, timeline, blocks)),
        memory=memory,
        held=held,
    )


def _lanes(built: Built, timeline: Timeline, blocks: Blocks) -> list[Lane]:
    number = {kind.name: index for index, kind in enumerate(blocks.kinds)}
    starts, ends = timeline.start_s.tolist(), timeline.end_s.tolist()
    lanes = []
    for c, work in enumerate(built.work):
        spans: dict[tuple[int, str], tuple[float, float]] = {}
        for op, _ in work:
            key = built.waves[op], built.ops[op].block
            start_s, end_s = spans.get(key, (starts[op], ends[op]))
            spans[key] = min(start_s, starts[op]), max(end_s, ends[op])
        if work:
            told = tuple(
                Span(label=label, kind=number[blocks.kind_of[label]], wave=wave, start_s=start_s, end_s=end_s)
                for (wave, label), (start_s, end_s) in spans.items()
            )
            ranks = built.ranks
            lanes.append(Lane(name=ranks.name(c), stage=ranks.stage[c], ranks=ranks.count[c], spans=told))
    return lanes


def _held(built: Built, timeline: Timeline, blocks: Blocks) -> tuple[str, tuple[Held, ...]]:
    """The fullest HBM, and what is in it at its peak, layers added up."""
    program = built.program
    share = peak_bytes(program, timeline) / program.memory_capacity_bytes
    fullest = int(np.argmax(share[: len(built.ranks.stage)]))
    short = _short_names(blocks)
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for label, size in live_at_peak(program, timeline, fullest):
        tensor = blocks.graph.tensors.get(label)
        role = _ROLES[tensor.role] if tensor is not None and tensor.role in RESIDENT_ROLES else _PASSING
        key = short.get(label, label), role
        count, total = sums.get(key, (0, 0))
        sums[key] = count + 1, total + size
    held = [Held(name=name, role=role, count=count, bytes=size) for (name, role), (count, size) in sums.items()]
    return program.memory_names[fullest], tuple(sorted(held, key=lambda each: (-each.bytes, each.name)))


def _short_names(blocks: Blocks) -> dict[str, str]:
    """The name of every tensor without that of its block."""
    short = {}
    for label, names in blocks.rename.items():
        own = blocks.kind_of[label] + "."
        for name, actual in names.items():
            short[actual] = name.removeprefix(own)
    return short
