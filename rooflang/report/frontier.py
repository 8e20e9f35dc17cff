"""The frontier that a search found, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rooflang.report.layout import facts, paragraph, table
from rooflang.report.numbers import show_count, show_dollars, show_gap, show_memory, show_rate
from rooflang.report.plans import number_plans, plan_key, show_mesh, show_plans
from rooflang.search.point import Evaluated, Point, Result
from rooflang.units import show_bytes, show_seconds

#: Modes of overlap that read badly before the word.
_OVERLAP = {"none": "no", "all": "every"}


def show_frontier(points: Sequence[Point], *, usd: Callable[[Point], float | None] = lambda point: None) -> str:
    """One row a point, highest interactivity first. `gap` is how far the step time is above its lower bound. Where the
    points lie on different numbers of GPUs these are told, and where `usd` prices them what a million tokens costs."""
    numbers = number_plans(points)
    sizes, priced = len({point.gpus for point in points}) > 1, usd(points[0]) is not None
    rows = []
    for point in points:
        sim = point.sim
        cost = usd(point)
        row = [
            str(numbers[plan_key(point)]),
            *([str(point.gpus)] if sizes else []),
            show_count(point.batch),
            str(point.pp),
            show_mesh(point.mesh),
            show_rate(sim.tok_s_gpu),
            show_rate(sim.tok_s_user),
            *([] if cost is None else [show_dollars(cost)]),
            show_seconds(sim.step_s),
            show_gap(point.gap),
            show_memory(sim.peak_bytes, sim.capacity_bytes),
            sim.bottleneck,
        ]
        rows.append(row)
    capacity = show_bytes(points[0].sim.capacity_bytes)
    heads = ["plan", *(["GPUs"] if sizes else []), "batch", "PP", "mesh", "tok/s/GPU", "tok/s/user"]
    heads += [*(["$/M tok"] if priced else []), "step", "gap", f"peak of {capacity}", "<bottleneck"]
    return table(heads, rows)


def show_table(result: Result) -> str:
    """The frontier of a result, with its prices."""
    return show_frontier(result.frontier, usd=result.usd)


def show_result(result: Result, command: str) -> str:
    """Everything about a search: what was asked, the frontier, its plans in words, the work, and how to do it again."""
    parts = [show_inputs(result.inputs), show_table(result), show_plans(result.frontier)]
    parts.extend([facts(footer(result), indent=""), show_origin(result.inputs, command)])
    return "\n\n".join(parts)


def show_inputs(inputs: Mapping[str, Any]) -> str:
    """One line: the model, the workload (a graph has none), the cluster and the way it was computed."""
    workload = f", {inputs['stage']}, context {show_count(inputs['context'])}" if inputs["context"] else ""
    size = f"up to {inputs['max_gpus']}" if "max_gpus" in inputs else inputs["gpus"]
    return paragraph(
        f"{inputs['model']}{workload}, on {size} {inputs['hardware']}; "
        + (f"{inputs['search']} search, " if "search" in inputs else "")
        + f"{_OVERLAP.get(inputs['overlap'], inputs['overlap'])} overlap, {inputs['assumptions']} assumptions"
        + "".join(f", {name} {_word(value)}" for name, value in inputs.get("changed_assumptions", {}).items()),
        then="  ",
    )


def _word(value: object) -> str:
    """The value of an assumption, as the options of the command line say it; of many numbers, how many."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"of {len(value)}" if isinstance(value, tuple) else str(value)


def footer(result: Result) -> list[tuple[str, str]]:
    """Notes, the scopes of bounds, the work and what ended it, as names and values."""
    scopes = sorted({point.bound_scope for point in result.frontier if point.bound_scope})
    rows = [("note", note) for note in result.notes]
    rows.extend(("bound", scope) for scope in scopes)
    rows.append(("looked at", show_work(result.evaluated)))
    rows.append(("stopped by", f"{result.stopped_by}, after {show_seconds(result.seconds)}"))
    return rows


def show_origin(inputs: Mapping[str, Any], command: str) -> str:
    """How to get the result again. The command is not wrapped, so that it can be copied."""
    return f"Again, with inputs of hash {inputs['hash']}:\n  {command}"


def show_work(work: Evaluated) -> str:
    """The counts of a search in words, those that are zero left out."""
    counts = (
        (work.configurations, "configurations"),
        (work.screened_out, "screened out by cost"),
        (work.impossible, "impossible"),
        (work.extracted, "extracted from e-graphs"),
        (work.simulated, "simulated"),
        (work.out_of_memory, "of these out of memory"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in counts if count) or "nothing"
