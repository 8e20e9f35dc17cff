"""A comparison of agents with the search, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflang.report.frontier import show_inputs
from rooflang.report.layout import facts, paragraph, table
from rooflang.report.numbers import show_count, show_gap, show_layers, show_rate
from rooflang.report.plans import show_mesh
from rooflang.units import show_seconds


def show_comparison(told: Mapping[str, Any], command: str) -> str:
    """A comparison as JSON data, as text: who found what, their plans in words, how the bound and the search stand.
    The command is the one that gives it again."""
    inputs, rows = told["inputs"], told["contenders"]
    parts = [
        show_inputs(inputs) + f"\n  batch {show_count(inputs['batch'])}, {inputs['budget']:,} simulations for each"
        f" scripted agent, seed {inputs['seed']}",
        _table(rows),
        *(_plan(row) for row in rows if row["point"] is not None),
        facts(_footer(told), indent=""),
        f"Again:\n  {command}",
    ]
    return "\n\n".join(parts)


def _table(rows: list[Mapping[str, Any]]) -> str:
    """One line for each; what nothing is known of is a dash."""
    heads = ("<", "step", "tok/s/GPU", "gap", "PP", "mesh", "simulations", "<derivable")
    return table(heads, [_cells(row) for row in rows])


def _cells(row: Mapping[str, Any]) -> list[str]:
    point, verdict = row["point"], row["derivable"]
    if point is None:
        return [_name(row), *["–"] * 5, f"{row['simulations']:,}", "–"]
    return [
        _name(row),
        show_seconds(point["step_s"]),
        show_rate(point["tok_s_gpu"]),
        show_gap(point["gap"]),
        str(point["pp"]),
        show_mesh(point["mesh"]),
        f"{row['simulations']:,}",
        verdict["verdict"],
    ]


def _plan(row: Mapping[str, Any]) -> str:
    """The plan in words, how long it took to find, and why it is not derivable if it is not."""
    point, derivable = row["point"], row["derivable"]
    words = f"{point['plan']} stages" if point["pp"] > 1 else f"{point['plan']} stage"
    if point["pp"] > 1:
        words += f" of {show_layers(point['pp_partition'])} layers"
    lines = [paragraph(words, first="  ", then="  ")]
    if derivable["reason"]:
        lines.append(paragraph(f"{derivable['verdict']}: {derivable['reason']}", first="  ", then="  "))
    took = f", in {show_seconds(row['seconds'])}" if row["seconds"] else ""
    return "\n".join([_name(row) + took, *lines])


def _name(row: Mapping[str, Any]) -> str:
    """The name of a contender; a long command or path by its end."""
    name: str = row["name"]
    return name if len(name) <= 30 else "…" + name[-29:]


def _footer(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [(_name(row), row["note"]) for row in told["contenders"] if row["note"]]
    if told["bound_s"] is not None:
        rows.append(("bound", f"{show_seconds(told['bound_s'])}: {told['bound_scope']}"))
    if told["replayed"] is not None:
        rows.append(
            ("optimize", f"its certificate, {told['replayed']:,} primitives in a session: same graph, same time")
        )
    rows.append(("stopped by", f"{told['stopped_by']}, after {show_seconds(told['seconds'])}"))
    return rows
