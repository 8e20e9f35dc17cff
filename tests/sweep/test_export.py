"""The flat lines of a store."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from rooflang.sweep import Store, run_sweep
from rooflang.sweep.export import COLUMNS, as_csv, as_json_lines
from rooflang.sweep.job import Row


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    from .conftest import GRAPH, SPEC

    folder = tmp_path_factory.mktemp("export")
    (folder / "mlp.rl").write_text(GRAPH, encoding="utf-8")
    (folder / "study.toml").write_text(SPEC, encoding="utf-8")
    with Store(run_sweep(folder / "study.toml").store, make=False) as store:
        return list(store.rows())


def lines(rows: list[Row]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in as_json_lines(rows).splitlines()]


def test_a_line_for_each_point_and_for_each_case_without_one(rows: list[Row]) -> None:
    told = lines(rows)
    points = {row.key: len(json.loads(row.result)["frontier"]) for row in rows if row.result}
    assert len(told) == sum(points.values()) + sum(not row.result for row in rows)
    for row in rows:
        mine = [line for line in told if line["key"] == row.key]
        assert [line["point"] for line in mine] == ([*range(1, points[row.key] + 1)] if row.result else [None])
        if row.result:
            for line, point in zip(mine, json.loads(row.result)["frontier"]):
                assert line["tok_s_gpu"] == point["tok_s_gpu"]
                assert line["usd_per_million_tokens"] == point.get("usd_per_million_tokens")
        else:
            assert mine[0]["error"] == row.error and mine[0]["tok_s_gpu"] is None


def test_every_line_has_every_column_and_a_column_one_type(rows: list[Row]) -> None:
    told = lines(rows)
    for column in COLUMNS:
        assert len({type(line[column]) for line in told if line[column] is not None}) <= 1, column
    assert all(tuple(line) == COLUMNS for line in told)
    assert {line["point_gpus"] for line in told} >= {1, 2, 4, 8}


def test_lines_are_sorted_and_do_not_depend_on_the_order_of_the_store(rows: list[Row]) -> None:
    assert as_json_lines(rows[::-1]) == as_json_lines(rows)
    told = lines(rows)
    assert [line["hardware"] for line in told] == sorted(line["hardware"] for line in told)
    gpus = [line["gpus"] for line in told if line["hardware"] == "b300"]
    assert gpus == sorted(gpus)


def test_csv_has_the_same(rows: list[Row]) -> None:
    table = list(csv.DictReader(io.StringIO(as_csv(rows))))
    told = lines(rows)
    assert len(table) == len(told)
    for row, line in zip(table, told):
        assert row == {name: "" if value is None else str(value) for name, value in line.items()}


def test_nothing_stored_is_a_head_alone() -> None:
    assert as_csv([]) == ",".join(COLUMNS) + "\n"
    assert as_json_lines([]) == ""
