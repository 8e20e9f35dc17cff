"""Each assumption alone, from one profile and from the other."""

from __future__ import annotations

from typing import Any

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.errors import CapacityError
from rooflang.report.reproduction import attribution
from rooflang.report.reproduction.attribution import (
    EXAMPLES,
    Effects,
    attributed,
    attributed_examples,
    attribution_jobs,
    differing,
)
from rooflang.report.reproduction.setting import MODELS, Scope


def test_every_difference_of_the_profiles_is_tried_in_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Assumptions] = []

    def step(asked: Any, layout: Any, assumptions: Assumptions) -> tuple[float, int]:
        seen.append(assumptions)
        return 1.0, len(seen)

    monkeypatch.setattr(attribution, "_step", step)
    data = attributed(model="some", assumptions="paper", layout={})
    assert len(data["step_s"]) == len(seen) == 2 * (1 + len(differing()))
    assert list(data["peak_bytes"].values()) == list(range(1, len(seen) + 1))
    for base in (PAPER, PHYSICAL):
        changed = [each for each in seen if each.name == base.name]
        assert {tuple(each.differs_from(base)) for each in changed} == {(), *((name,) for name in differing())}


def test_every_model_is_among_the_examples() -> None:
    assert {example.setting.model for example in EXAMPLES} == set(MODELS)
    jobs = list(attribution_jobs(Scope()))
    assert len({job.name for job in jobs}) == len(jobs) == len(EXAMPLES)


def test_effects_are_ratios() -> None:
    step_s = {"paper": 1.0, "physical": 2.0, "paper indexer": 1.1, "physical indexer": 1.6, "physical kv_append": None}
    each = Effects(amount=step_s)
    assert each.whole == 1.0
    assert each.added("indexer") == pytest.approx(0.1)
    assert each.removed("indexer") == pytest.approx(0.25)
    assert each.removed("kv_append") is None
    assert each.most("indexer") == each.removed("indexer")


def test_what_does_not_fit_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**asked: Any) -> None:
        raise CapacityError("too large")

    monkeypatch.setattr(attribution, "prepare", full)
    (job, *_) = attribution_jobs(Scope())
    data = job.work(**job.asked)
    assert set(data["step_s"].values()) == set(data["peak_bytes"].values()) == {None}
    (found,) = attributed_examples({job.name: data})
    assert found.step.whole is found.peak.whole is None
