"""A journal line by line, with what each line did to the step time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflang.agent.journal import replay
from rooflang.report.layout import table
from rooflang.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from rooflang.agent.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """After a line of a journal (the first row is the initial graph): how many actions were taken by then, the step
    time, and what the fullest device holds, whether it has room for it or not."""

    line: str
    actions: int
    step_s: float
    peak_bytes: int
    fits: bool

    def to_json(self) -> dict[str, Any]:
        """The row as JSON data."""
        return {
            "line": self.line,
            "actions": self.actions,
            "step_s": self.step_s,
            "peak_bytes": self.peak_bytes,
            "fits": self.fits,
        }


def replayed(text: str, *, where: str = "journal", **given: Any) -> Iterator[tuple[Row, Session]]:
    """A row for each line of a journal, and the session then; `given` as in `journal.replay`, raises as it does."""
    for line, session in replay(text, where=where, **given):
        found = session.simulate(check_memory=False)
        row = Row(
            line=line,
            actions=len(session.entries),
            step_s=found.step_s,
            peak_bytes=found.peak_bytes,
            fits=found.fits,
        )
        yield row, session


def show_rows(rows: list[Row]) -> str:
    """The rows as a table: the change of the step time is that by the line."""
    cells = []
    for before, row in zip([rows[0], *rows], rows):
        change = "" if row is before else f"{row.step_s / before.step_s - 1.0:+.1%}"
        peak = show_bytes(row.peak_bytes) + ("" if row.fits else ", too much")
        cells.append((str(row.actions), show_seconds(row.step_s), change, peak, row.line or "(initial graph)"))
    return table(("actions", "step", "change", "peak", "<line"), cells)
