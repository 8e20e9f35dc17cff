"""One simulated point, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rooflang.report.frontier import show_inputs, show_origin
from rooflang.report.layout import facts, table
from rooflang.report.numbers import show_rate, show_share
from rooflang.report.plans import show_plan
from rooflang.search.point import Point
from rooflang.sim.result import SimResult
from rooflang.units import show_bytes, show_seconds

#: What a word of `SimResult.bottleneck` means; other words are fabric levels.
_BOTTLENECKS = {"compute": "compute: the peak FLOP rate", "memory": "memory: the bandwidth of HBM"}


def show_point(point: Point, inputs: Mapping[str, Any], command: str, *, more: Sequence[str] = ()) -> str:
    """Numbers, time by group of operators and by stage, the largest tensors, the plan, `more` that was asked for, and
    how to get it all again."""
    parts = [show_inputs(inputs), facts(_numbers(point)), _groups(point.sim)]
    if point.pp > 1:
        parts.append(_stages(point))
    parts.append(_largest(point.sim))
    parts.append("plan\n" + show_plan(point, [point.origin]))
    parts.extend(more)
    parts.append(show_origin(inputs, command))
    return "\n\n".join(parts)


def _numbers(point: Point) -> list[tuple[str, str]]:
    sim = point.sim
    return [
        ("batch", f"{point.batch:,}"),
        ("throughput", f"{show_rate(sim.tok_s_gpu)} tok/s/GPU"),
        ("interactivity", f"{show_rate(sim.tok_s_user)} tok/s/user"),
        ("step time", show_seconds(sim.step_s) + (" of the slowest stage" if point.pp > 1 else "")),
        ("bottleneck", _BOTTLENECKS.get(sim.bottleneck, f"{sim.bottleneck}: the fabric")),
        (
            "peak memory",
            f"{show_bytes(sim.peak_bytes)} of {show_bytes(sim.capacity_bytes)} "
            f"({show_share(sim.peak_bytes / sim.capacity_bytes)})",
        ),
        ("simulated", f"{sim.operators:,} operators, {sim.events:,} events"),
    ]


def _groups(sim: SimResult) -> str:
    """Groups overlap with nothing here: their times add up to the step without overlap."""
    total_s = sum(sim.groups_s.values())
    rows = [(name, show_seconds(own_s), show_share(own_s / total_s)) for name, own_s in sim.groups_s.items()]
    return table(("<operators", "time", "share"), rows)


def _stages(point: Point) -> str:
    """Successive stages of equal figures share a row."""
    rows: list[tuple[str, ...]] = []
    first = 0
    for index, (stage, layers) in enumerate(zip(point.sim.stages, point.pp_partition, strict=True)):
        figures = (
            str(layers),
            show_seconds(stage.span_s(point.sim.overlap)),
            show_seconds(stage.local_s),
            show_seconds(stage.exposed_s),
            show_bytes(stage.peak_bytes),
        )
        if rows and rows[-1][1:] == figures:
            rows[-1] = (f"{first}–{index}", *figures)
        else:
            first = index
            rows.append((str(index), *figures))
    return table(("stage", "layers", "time", "local", "network", "peak memory"), rows)


def _largest(sim: SimResult) -> str:
    rows = [(name, show_bytes(size), show_share(size / sim.peak_bytes)) for name, size in sim.largest]
    return table(("<largest tensors at the peak", "bytes", "share"), rows)
