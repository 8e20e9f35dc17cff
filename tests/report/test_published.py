"""Tables 7 and 8: every printed digit of the rows of all four models."""

from __future__ import annotations

import pytest

from rooflang.models.tables import published_rows
from rooflang.report.published import COLUMNS, Compared, compare_tables, tables_json
from rooflang.search.progress import Progress

ROWS = [(row.model, row.context) for row in published_rows()]
MODELS = ("deepseek-v4-flash", "deepseek-v4-pro", "glm-5.3", "kimi-k3")


def check(row: Compared) -> None:
    for name in COLUMNS:
        assert row.cells[name].printed == row.cells[name].published, name
        assert row.cells[name].error == 0.0


@pytest.fixture(scope="module")
def first() -> Compared:
    return next(compare_tables(Progress(sink=lambda message: None)))


def test_every_printed_digit_of_the_first_row(first: Compared) -> None:
    assert (first.model, first.context) == ROWS[0]
    check(first)


@pytest.mark.slow
def test_every_printed_digit_of_every_row() -> None:
    rows = list(compare_tables(Progress(sink=lambda message: None)))
    assert [(row.model, row.context) for row in rows] == ROWS
    assert set(ROWS) == {(model, context) for model in MODELS for context in (2**16, 2**20)}
    for row in rows:
        check(row)


def test_json_has_the_unrounded_figures(first: Compared) -> None:
    found = tables_json([first])
    first = found["rows"][0]["cells"]["traffic_gib"]
    assert first["printed"] == round(first["computed"], 3) != first["computed"]
    assert "Tables 7 and 8" in found["source"]
