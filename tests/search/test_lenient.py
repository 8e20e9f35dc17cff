"""What Python lets through is refused with a typed error, or means what it says."""

from __future__ import annotations

from typing import Any

import pytest

from rooflang.errors import RooflangError
from rooflang.search.api import optimize, simulate

TASK: dict[str, Any] = {"hardware": "b300", "gpus": 8, "context": 8192}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"batch": ["8"]}, "--batch: '8' is not possible"),
        ({"batch": 8}, "--batch: 8 is not possible"),
        ({"batch": "8"}, "--batch: '8' is not possible"),
        ({"model": None}, "model: unknown model 'None'"),
        ({"hardware": None}, "unknown hardware 'None'"),
        ({"gpus": "8"}, "--gpus: '8' is not possible"),
        ({"gpus": 8.0}, "--gpus: 8.0 is not possible"),
        ({"context": "8k"}, "--context: '8k' is not possible"),
        ({"stage": None}, "--stage: unknown stage 'None'"),
        ({"assumptions": None}, "--assumptions: unknown assumption profile 'None'"),
        ({"pp": "1"}, "--pp: '1' is not possible"),
        ({"overlap": None}, "--overlap: unknown overlap 'None'"),
        ({"search": None}, "--search: unknown search 'None'"),
        ({"time_limit_s": float("nan")}, "--time-limit: nan is not possible"),
        ({"time_limit_s": "5"}, "--time-limit: '5' is not possible"),
        ({"disable_rules": [None]}, "--disable-rule: None is not possible"),
        ({"disable_rules": "no_rule"}, "unknown rule 'no_rule'"),
    ],
)
def test_a_search_of_what_cannot_be(changes: dict[str, Any], says: str) -> None:
    given = {"model": "deepseek-v4-flash", **TASK, **changes}
    with pytest.raises(RooflangError) as caught:
        optimize(given.pop("model"), **given)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"batch": 8.0}, "--batch: 8.0 is not possible"),
        ({"batch": True}, "--batch: True is not possible"),
        ({"dp": "8"}, "--dp: '8' is not possible"),
        ({"cp": 0}, "--cp: 0 is not possible"),
    ],
)
def test_a_configuration_that_cannot_be(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(RooflangError) as caught:
        simulate("deepseek-v4-flash", **{"batch": 8, "dp": 8, **TASK, **changes})
    assert str(caught.value).startswith(says)
