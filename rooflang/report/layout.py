"""Tables and paragraphs of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

#: Text is wrapped at this width. Cells are never shortened: a table whose cells need more room is wider.
WIDTH = 100

_GAP = "  "


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows under their heads. A head that begins with `<` makes a column of words, set to the left; other columns are
    numbers, set to the right. The last column is wrapped if it is one of words."""
    words = [head.startswith("<") for head in heads]
    body = [[head.removeprefix("<") for head in heads], *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in body) for column in range(len(heads))]
    if words[-1]:
        room = WIDTH - sum(width + len(_GAP) for width in widths[:-1])
        widths[-1] = min(widths[-1], max(room, len(body[0][-1]), 24))
    lines = []
    for row in body:
        *cells, last = row
        parts = _wrap(last, widths[-1]) if words[-1] else [last.rjust(widths[-1])]
        first = [cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(cells, widths, words)]
        lines.append(_GAP.join([*first, parts[0]]).rstrip())
        indent = sum(width + len(_GAP) for width in widths[:-1])
        lines.extend(" " * indent + part for part in parts[1:])
    return "\n".join(lines)


def facts(pairs: Iterable[tuple[str, str]], *, indent: str = "  ") -> str:
    """Names and values below each other, values wrapped."""
    rows = list(pairs)
    width = max((len(name) for name, _ in rows), default=0)
    lines = []
    for name, value in rows:
        start = f"{indent}{name.ljust(width)}{_GAP}"
        lines.extend(paragraph(value, first=start, then=" " * len(start)).splitlines() or [start.rstrip()])
    return "\n".join(lines)


def paragraph(text: str, *, first: str = "", then: str | None = None) -> str:
    """Text wrapped between words; `first` begins the first line and `then` (default: `first`) the others."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if then is None else then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
