"""One plan under every overlap mode, as text and as JSON."""

from __future__ import annotations

from typing import Any

from rooflang.report.layout import paragraph, table
from rooflang.report.numbers import show_memory, show_rate
from rooflang.sim.result import Bracket, SimResult
from rooflang.units import show_bytes, show_seconds


def show_bracket(found: Bracket) -> str:
    """Floor, schedule and ceiling below each other; why there is no schedule, if there is none."""
    text = table(*bracket_table(found))
    if found.schedule is None:
        text += "\n" + paragraph(f"no schedule of two micro-batches: {found.refusal}", then="  ")
    elif found.best is found.floor:
        text += "\n" + paragraph("two micro-batches cost more here than their overlap brings: run it as one", then="  ")
    return text


def bracket_table(found: Bracket) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heads and the rows of that table."""
    rows = [_row("floor", found.floor)]
    if found.schedule is not None:
        rows.append(_row("schedule", found.schedule))
    rows.append(_row("ceiling", found.ceiling))
    peak = f"peak of {show_bytes(found.floor.capacity_bytes)}"
    return ("<", "<overlap", "step", "tok/s/GPU", "tok/s/user", peak, "<bottleneck"), rows


def bracket_json(found: Bracket) -> dict[str, Any]:
    """The bracket as JSON-ready data; `schedule` is null where there is none, and `refusal` says why."""
    return {
        "floor": _json(found.floor),
        "schedule": None if found.schedule is None else _json(found.schedule),
        "ceiling": _json(found.ceiling),
        "refusal": found.refusal,
    }


def _row(name: str, sim: SimResult) -> tuple[str, ...]:
    return (
        name,
        sim.overlap,
        show_seconds(sim.step_s),
        show_rate(sim.tok_s_gpu),
        show_rate(sim.tok_s_user),
        show_memory(sim.peak_bytes, sim.capacity_bytes),
        sim.bottleneck,
    )


def _json(sim: SimResult) -> dict[str, Any]:
    names = ("overlap", "step_s", "tok_s_gpu", "tok_s_user", "peak_bytes", "capacity_bytes", "bottleneck")
    return {name: getattr(sim, name) for name in names} | {"groups_s": dict(sim.groups_s)}
