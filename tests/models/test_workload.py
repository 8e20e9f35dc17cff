"""What a workload may be, and how many tokens it runs."""

from __future__ import annotations

from typing import Any

import pytest

from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.models import Workload


def test_decode_runs_one_token_of_a_request() -> None:
    assert Workload(stage="decode", context=65536, batch=8).tokens == 1


def test_prefill_runs_the_whole_prompt() -> None:
    assert Workload(stage="prefill", context=8192, batch=8).tokens == 8192


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"context": 0}, "--context"),
        ({"context": -1}, "--context"),
        ({"context": 1.5}, "--context"),
        ({"batch": 0}, "--batch"),
        ({"batch": "8"}, "--batch"),
    ],
)
def test_sizes_below_one_or_not_whole_are_refused(change: dict[str, Any], where: str) -> None:
    with pytest.raises(ValueRangeError) as caught:
        Workload(**{"stage": "decode", "context": 64, "batch": 1, **change})
    assert caught.value.where == where
    assert "1 or more" in str(caught.value)


def test_unknown_stage_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        Workload(stage="decod", context=64, batch=1)  # type: ignore[arg-type]
    assert caught.value.hint == "did you mean decode?"
    assert caught.value.where == "--stage"
