"""Floor, schedule and ceiling as text: which rows there are, and what is said beside them."""

from __future__ import annotations

from dataclasses import replace

from rooflang.report.bracket import bracket_json, show_bracket
from rooflang.sim.result import Bracket

from .test_plans import SIM

FLOOR = replace(SIM, step_s=3e-3)
SCHEDULE = replace(SIM, overlap="two-batch", step_s=2e-3)
CEILING = replace(SIM, overlap="perfect", step_s=1e-3)


def rows(found: Bracket) -> list[list[str]]:
    return [line.split()[:3] for line in show_bracket(found).splitlines()[1:]]


def test_three_rows() -> None:
    found = Bracket(floor=FLOOR, schedule=SCHEDULE, ceiling=CEILING)
    assert rows(found) == [["floor", "none", "3"], ["schedule", "two-batch", "2"], ["ceiling", "perfect", "1"]]
    assert bracket_json(found)["schedule"]["step_s"] == 2e-3


def test_a_schedule_that_does_not_pay_is_called_so() -> None:
    text = show_bracket(Bracket(floor=FLOOR, schedule=replace(SCHEDULE, step_s=4e-3), ceiling=CEILING))
    assert "two micro-batches cost more here than their overlap brings" in text
    assert "cost more" not in show_bracket(Bracket(floor=FLOOR, schedule=SCHEDULE, ceiling=CEILING))


def test_no_schedule_is_explained() -> None:
    found = Bracket(floor=FLOOR, schedule=None, ceiling=CEILING, refusal="a batch of 1 does not split")
    assert show_bracket(found).endswith("no schedule of two micro-batches: a batch of 1 does not split")
    assert [row[0] for row in rows(found)] == ["floor", "ceiling", "no"]
    assert bracket_json(found)["schedule"] is None
    assert bracket_json(found)["refusal"] == "a batch of 1 does not split"
