"""Close-ups as small JSON: rows without keys, words by number, times in five digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rooflang.report.html.record import Block, CloseUp, Row, Span

#: Operators of the critical path that the page lists.
_OPERATORS = 10

#: Classes of ranks whose lanes it draws.
_LANES = 48


class Words:
    """A list of words, each once."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def __call__(self, word: str) -> int:
        return self.number.setdefault(word, len(self.number))

    def all(self, words: Sequence[str]) -> list[int]:
        """The numbers of several."""
        return [self(word) for word in words]


def packed(close: CloseUp, words: Words) -> dict[str, Any]:
    """The close-up as `page.js` unpacks it."""
    data = close.to_json()
    explanation = data["explanation"]
    explanation["by_operator"] = explanation["by_operator"][:_OPERATORS]
    data["explanation"] = _brief({name: value for name, value in explanation.items() if name != "path"})
    data["blocks"] = [_block(block, words) for block in close.blocks]
    data["lanes"] = [
        {
            "name": lane.name,
            "stage": lane.stage,
            "ranks": lane.ranks,
            "spans": [_span(span, words) for span in lane.spans],
        }
        for lane in close.lanes[:_LANES]
    ]
    data["lanes_more"] = max(0, len(close.lanes) - _LANES)
    data["held"] = [asdict(held) for held in close.held]
    return data


def _block(block: Block, words: Words) -> dict[str, Any]:
    return {"name": block.name, "labels": words.all(block.labels), "rows": [_row(row, words) for row in block.rows]}


def _row(row: Row, words: Words) -> list[Any]:
    return [
        words(row.what),
        words(row.name),
        words(row.kind),
        words(row.group),
        words.all(row.covers),
        words.all(row.cuts),
        words.all(row.lies),
        row.axes,
        row.reads,
        [[words(name), size] for name, size in row.weights],
        row.bytes,
        _short(row.start_s),
        _short(row.seconds),
        words(row.bound),
        int(row.critical),
    ]


def _span(span: Span, words: Words) -> list[Any]:
    return [words(span.label), span.kind, span.wave, _short(span.start_s), _short(span.end_s)]


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _brief(data: Any) -> Any:
    """The same data, its floats in five digits."""
    if isinstance(data, float):
        return _short(data)
    if isinstance(data, dict):
        return {name: _brief(value) for name, value in data.items()}
    return [_brief(value) for value in data] if isinstance(data, (list, tuple)) else data
