"""Tables for notebooks, what `_repr_html_` of results, layouts and graphs returns, and for Python's prompt, where
`repr` of results and services is one.

Everything is escaped, nothing is styled beyond alignment, so that the notebook's own theme holds; a table has at most
`ROWS` rows, so that a whole model does not fill the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

#: Rows that are shown.
ROWS = 40


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "") -> str:
    """A table under a title. `rows` have a text for each of the `heads`; of those after the first `ROWS`, the number is
    told. `note` stands below."""
    every = [tuple(row) for row in rows]
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in every[:ROWS])
    left = f"{len(every) - ROWS:,} more rows" if len(every) > ROWS else ""
    below = "".join(f"<p>{escape(text)}</p>" for text in (left, note) if text)
    head = f"<thead><tr>{_cells('th', heads)}</tr></thead>"
    return f"<table><caption>{escape(title)}</caption>{head}<tbody>{body}</tbody></table>{below}"


def text_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "") -> str:
    """The same as text, columns to the right."""
    every = [tuple(row) for row in rows]
    shown = [tuple(heads), *every[:ROWS]]
    widths = [max(map(len, column)) for column in zip(*shown)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in shown]
    left = [f"{len(every) - ROWS:,} more rows"] if len(every) > ROWS else []
    return "\n".join([title, *lines, *left, *([note] if note else [])])


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f'<{tag} style="text-align:left">{escape(text)}</{tag}>' for text in texts)
