"""The comparison with published tables, as text."""

from __future__ import annotations

from collections.abc import Sequence

from rooflang.models.tables import DECIMALS, published_source
from rooflang.report.layout import paragraph, table
from rooflang.report.numbers import show_count, show_error
from rooflang.report.published import ASSUMPTIONS, COLUMNS, GPUS, HARDWARE, Cell, Compared


def show_tables(rows: Sequence[Compared]) -> str:
    """One line for each number: computed, published, relative error at the printed precision."""
    lines = []
    for row in rows:
        for name, title in COLUMNS.items():
            cell = row.cells[name]
            lines.append((row.model, show_count(row.context), title, *_figures(name, cell)))
    intro = paragraph(
        f"{published_source()}. Computed under the {ASSUMPTIONS!r} assumptions; the peak batch by simulating the grid "
        f"on {GPUS} {HARDWARE}. Errors are those of the printed digits."
    )
    heads = ("<model", "context", "<quantity", "computed", "published", "error")
    return f"{intro}\n\n{table(heads, lines)}"


def _figures(name: str, cell: Cell) -> tuple[str, str, str]:
    digits = 0 if name == "batch" else DECIMALS
    return f"{cell.printed:,.{digits}f}", f"{cell.published:,.{digits}f}", show_error(cell.error)
