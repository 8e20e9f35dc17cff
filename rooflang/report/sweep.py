"""What a sweep came to, as text."""

from __future__ import annotations

from rooflang.report.layout import facts
from rooflang.sweep.run import Summary
from rooflang.units import show_seconds


def show_summary(summary: Summary) -> str:
    """Counts of cases, by what became of them, and where they are kept."""
    found = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.outcomes.items()) or "none"
    rows = [
        ("cases", f"{summary.cases:,}, of which {summary.stored:,} were stored before"),
        ("added", found),
        *([("others", f"{summary.others:,} stored by another sweep meanwhile")] if summary.others else []),
        *([("left", f"{summary.left:,}; the same command goes on from here")] if summary.left else []),
        *(
            [("bugs", f"{sum(summary.crashes.values()):,} cases met one; the first is on standard error")]
            if summary.crashes
            else []
        ),
        ("stopped by", f"{summary.stopped_by}, after {show_seconds(summary.seconds)}"),
        ("store", str(summary.store)),
    ]
    return facts(rows, indent="")
