"""Tables 7 and 8: every printed digit of the registered models' rows."""

from __future__ import annotations

import pytest

from rooflang.models.tables import published_rows
from rooflang.report.published import COLUMNS, Compared, compare_tables, tables_json
from rooflang.search.progress import Progress

ROWS = [(row.model, row.context) for row in published_rows()]


@pytest.fixture(scope="module")
def rows() -> list[Compared]:
    return list(compare_tables(Progress(sink=lambda message: None)))


@pytest.mark.parametrize("name", COLUMNS)
def test_every_printed_digit(rows: list[Compared], name: str) -> None:
    assert [(row.model, row.context) for row in rows] == ROWS
    for row in rows:
        assert row.cells[name].printed == row.cells[name].published
        assert row.cells[name].error == 0.0


def test_json_has_the_unrounded_figures(rows: list[Compared]) -> None:
    found = tables_json(rows)
    first = found["rows"][0]["cells"]["traffic_gib"]
    assert first["printed"] == round(first["computed"], 3) != first["computed"]
    assert "Tables 7 and 8" in found["source"]
