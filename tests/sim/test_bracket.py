"""Floor, schedule and ceiling in one record."""

from __future__ import annotations

import pytest

from rooflang.errors import CapacityError
from rooflang.sim.simulate import bracket, simulate

from .plans import placed_model


def test_a_bracket_is_the_three_simulations() -> None:
    placed, cost = placed_model(batch=4096)
    found = bracket(placed, cost, tokens=1)
    assert found.floor == simulate(placed, cost, tokens=1, overlap="none")
    assert found.schedule == simulate(placed, cost, tokens=1, overlap="two-batch")
    assert found.ceiling == simulate(placed, cost, tokens=1, overlap="perfect")
    assert found.ceiling.tok_s_gpu > max(found.floor.tok_s_gpu, found.schedule.tok_s_gpu)
    assert found.refusal == ""


def test_the_best_that_can_be_run_is_the_faster_one() -> None:
    small, large = (bracket(*placed_model(hardware="gb300", gpus=64, dp=64, batch=b), tokens=1) for b in (128, 65536))
    assert small.best is small.floor
    assert large.best is large.schedule


def test_a_batch_that_cannot_be_halved_leaves_the_schedule_out() -> None:
    found = bracket(*placed_model(batch=8, dp=8), tokens=1)
    assert found.schedule is None and found.best is found.floor
    assert "do not divide" in found.refusal


def test_what_does_not_fit_at_all_is_an_error() -> None:
    with pytest.raises(CapacityError):
        bracket(*placed_model(batch=65536), tokens=1)
