"""Tables 7 and 8 of the RoofLang paper: every computed column as printed."""

from __future__ import annotations

import dataclasses
from itertools import product

import pytest

from rooflang.errors import ValueRangeError
from rooflang.models import load
from rooflang.models.tables import DECIMALS, TableRow, published_rows, published_source, table_row


@pytest.mark.parametrize("printed", published_rows(), ids=lambda row: f"{row.model} {row.context}")
def test_computed_rows_are_the_published_ones_digit_by_digit(printed: TableRow) -> None:
    computed = table_row(load(printed.model), printed.context, printed.batch)
    rounded = {
        name: round(value, DECIMALS) if isinstance(value, float) else value
        for name, value in dataclasses.asdict(computed).items()
    }
    assert rounded == dataclasses.asdict(printed)


def test_all_models_at_both_contexts_are_published() -> None:
    rows = [(row.model, row.context) for row in published_rows()]
    models = ("deepseek-v4-flash", "deepseek-v4-pro", "glm-5.3", "kimi-k3")
    assert sorted(rows) == sorted(product(models, (65536, 1048576)))
    assert "2609.12551" in published_source()


def test_weights_are_shared_by_the_batch_and_the_cache_is_not() -> None:
    model = load("deepseek-v4-flash")
    one, four = table_row(model, 8192, 1), table_row(model, 8192, 4)
    assert one.weight_mib == pytest.approx(4 * four.weight_mib)
    assert one.kv_read_gib == four.kv_read_gib
    assert one.traffic_gib == pytest.approx(one.weight_mib / 1024 + one.kv_read_gib)


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueRangeError):
        table_row(load("deepseek-v4-flash"), 8192, 0)
