"""The nearest plans of a serving stack, as text."""

from __future__ import annotations

from collections.abc import Sequence

from rooflang.report.layout import table
from rooflang.report.numbers import show_count, show_rate, show_share
from rooflang.stacks import Nearest

#: Relative rounding of step times.
_ROUNDING = 1e-9


def show_nearest(found: Sequence[Nearest]) -> str:
    """For each plan the nearest that the stack can run and what that costs; then what it cannot express and how it is
    launched, once for each shape."""
    rows = []
    for one in found:
        sim, shape = one.point.sim, one.shape
        rows.append(
            (
                show_count(one.point.batch),
                str(shape.tp),
                str(shape.dp),
                str(shape.pp),
                str(shape.tp * shape.dp) if shape.ep else "",
                str(shape.tp) if shape.dcp else "",
                show_rate(sim.tok_s_gpu),
                show_rate(sim.tok_s_user),
                show_share(one.loss if abs(one.loss) > _ROUNDING else 0.0),
            )
        )
    heads = ("batch", "TP", "DP", "PP", "EP", "DCP", "tok/s/GPU", "tok/s/user", "step longer by")
    title = f"{found[0].stack.version}: the nearest plans that it has flags for, at their best"
    return "\n\n".join([f"{title}\n{table(heads, rows)}", *_launches(found)])


def _launches(found: Sequence[Nearest]) -> list[str]:
    last = {one.shape: one for one in found}
    parts = []
    for one in last.values():
        rows = [(f"  {group}", best, here) for group, best, here in one.missing]
        heads = ("<  cut otherwise", "<by the optimum", "<by the stack")
        differs = table(heads, rows) if rows else "  nothing is cut otherwise"
        parts.append(f"batch {show_count(one.point.batch)}\n{one.command}\n{differs}")
    return parts
