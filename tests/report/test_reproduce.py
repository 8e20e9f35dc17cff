"""Parts of the report: what is kept, what is computed again, what is shown. The numbers are checked elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rooflang.report import reproduce as module
from rooflang.report.reproduce import PARTS, SCHEMA, Part, reproduce
from rooflang.search.progress import Progress

CALM = Progress(sink=lambda message: None)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that were really computed."""
    done: list[str] = []

    def part(name: str) -> Part:
        def compute(progress: Progress) -> dict[str, object]:
            done.append(name)
            return {"name": name}

        return Part(title=f"Title of {name}", compute=compute, show=lambda data: f"shows {data['name']}")

    monkeypatch.setattr(module, "PARTS", {name: part(name) for name in ("one", "two")})
    monkeypatch.setattr(module, "_key", lambda: "k1")
    return done


def test_a_report_has_its_parts_in_order(runs: list[str]) -> None:
    report = reproduce(("two", "one"), None, CALM)
    assert report.index("## Title of two\n\nshows two") < report.index("## Title of one\n\nshows one")
    assert report.startswith("# ")
    assert "2609.12551" in report
    assert runs == ["two", "one"]


def test_parts_that_are_there_are_not_computed_again(runs: list[str], tmp_path: Path) -> None:
    first = reproduce(("one",), tmp_path, CALM)
    assert reproduce(("one", "two"), tmp_path, CALM).startswith(first)
    assert runs == ["one", "two"]
    found = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    assert found == {"schema": SCHEMA, "part": "one", "key": "k1", "data": {"name": "one"}}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "other"}', '{"schema": "rooflang.reproduced/1", "key": "k0"}']
)
def test_what_is_no_answer_to_this_question_is_computed_again(runs: list[str], tmp_path: Path, text: str) -> None:
    (tmp_path / "one.json").write_text(text, encoding="utf-8")
    reproduce(("one",), tmp_path, CALM)
    assert runs == ["one"]
    assert not list(tmp_path.glob("*.partial"))


def test_the_question_changes_with_what_it_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    before = module._key()
    assert before == module._key()
    monkeypatch.setattr(module, "GPUS", 32)
    assert module._key() != before


def test_tables_show_every_cell_with_its_digits() -> None:
    cells = {name: {"printed": 1.5, "published": 1.25, "relative_error": 0.2} for name in module.COLUMNS}
    text = PARTS["tables"].show({"rows": [{"model": "some-model", "context": 65536, "cells": cells}]})
    lines = text.splitlines()
    assert len(lines) == 2 + len(module.COLUMNS)
    assert lines[2].startswith("| some-model | 64k | peak batch | 2 | 1 |")
    assert lines[3].endswith("| 1.500 | 1.250 | +20.00% |")


def test_ratios_show_one_digit_and_the_error_of_it() -> None:
    row = {"model": "a", "over": "b", "context": 1048576, "printed": 9.7, "published": 9.6}
    assert PARTS["ratios"].show({"rows": [row]}).splitlines()[2] == "| a | b | 1m | 9.7 | 9.6 | +1.04% |"
