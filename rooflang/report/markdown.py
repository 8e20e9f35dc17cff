"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. A head that begins with `<` makes a column of words, set to the left; others are set to the right."""
    rule = ["---" if head.startswith("<") else "---:" for head in heads]
    lines = [[head.removeprefix("<") for head in heads], rule, *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
