"""What an agent did, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflang.report.layout import facts
from rooflang.units import show_seconds


def show_run(result: Mapping[str, Any]) -> str:
    """Counts of an agent's run, and its fastest plan."""
    best = result.get("best")
    rows = [
        ("agent", f"{result['command']} (exit status {result['exit_status']}, ended by {result['ended_by']})"),
        ("actions", f"{result.get('accepted', 0):,} accepted, {result.get('refused', 0):,} refused, "
         f"{result.get('failed', 0):,} failed"),
        ("simulations", f"{result.get('simulations', 0):,}"),
        ("time", show_seconds(result.get("seconds", 0.0))),
        *((name.replace("_", " "), f"{value:,}") for name, value in result["stated"].items()),
    ]  # fmt: skip
    if best is None:
        return facts([*rows, ("best plan", "none was simulated")], indent="")
    rows.append(("best step", show_seconds(best["step_s"])))
    rows.append(("best plan", best["plan"]))
    return facts(rows, indent="")
