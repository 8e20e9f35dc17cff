"""`rooflang tables`: text and JSON. The numbers themselves are checked in tests/report/test_published.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from rooflang.report.published import COLUMNS, Cell, Compared

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row whose figures are off by a known amount."""

    def rows(progress: object) -> Iterator[Compared]:
        cells = {name: Cell(value=1.0104, printed=1.01, published=1.0) for name in COLUMNS}
        yield Compared(model="some-model", context=65536, cells=cells)

    monkeypatch.setattr("rooflang.report.published.compare_tables", rows)


def test_text_has_both_numbers_and_the_error(run: Run) -> None:
    text = run("tables").stdout
    assert "Tables 7 and 8" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("some-model")]
    assert len(rows) == len(COLUMNS)
    assert rows[1][-3:] == ["1.010", "1.000", "+1.00%"]
    assert max(map(len, text.splitlines())) <= 100


def test_json(run: Run, folder: Path) -> None:
    assert run("tables", "--json", "out.json").stdout == run("tables").stdout
    found = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert found == json.loads(run("tables", "--json", "-").stdout)
    assert found["schema"] == "rooflang.tables/1"
    [row] = found["rows"]
    assert set(row["cells"]) == set(COLUMNS)
    assert row["cells"]["batch"]["computed"] == 1.0104
    assert row["cells"]["batch"]["relative_error"] == pytest.approx(0.01)
