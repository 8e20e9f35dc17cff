"""Pipelines: waves in flight, fill and drain, one shot and steady state, against what one can work out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.errors import CapacityError, PlacementError, ValueRangeError
from rooflang.sim.fleet import DeviceOverride
from rooflang.sim.pipeline import PipelineResult, simulate_pipeline
from rooflang.sim.simulate import simulate

from .plans import Placed, placed_model


def shaped(batch: int, pp: int = 4) -> Placed:
    return placed_model(gpus=8, dp=2, cp=1, pp=pp, batch=batch)


def test_one_micro_batch_takes_the_latency_of_the_whole_pipeline() -> None:
    placed, cost = shaped(64)
    found = simulate_pipeline(placed, cost, tokens=1, micro_batches=1, steps=1)
    alone = simulate(placed, cost, tokens=1, overlap="none")
    assert found.first_s == found.total_s == found.cycle_s
    assert found.first_s == pytest.approx(sum(stage.elapsed_s for stage in alone.stages), rel=1e-9)
    assert sum(1 - idle for idle in found.idle) == pytest.approx(1.0)


def test_a_wave_a_stage_is_the_steady_state_that_a_point_reports() -> None:
    """PP waves of B requests: one step of a request takes PP times the slowest stage."""
    placed, cost = shaped(64)
    alone = simulate(placed, cost, tokens=1, overlap="none")
    four = replace(cost, sizes={**cost.sizes, "batch": 4 * 64})
    found = simulate_pipeline(placed, four, tokens=1, steps=6)
    assert (found.micro_batches, found.requests, found.steps) == (4, 64, 6)
    assert found.steady
    assert found.cycle_s == pytest.approx(4 * alone.step_s, rel=1e-3)
    assert found.tok_s_gpu == pytest.approx(alone.tok_s_gpu, rel=1e-3)
    assert found.tok_s_user == pytest.approx(alone.tok_s_user, rel=1e-3)
    assert max(found.peak_bytes) == pytest.approx(alone.peak_bytes, rel=1e-3)


def test_fewer_micro_batches_than_stages_leave_stages_idle_and_wait_for_their_token() -> None:
    placed, cost = shaped(64)
    two = replace(cost, sizes={**cost.sizes, "batch": 2 * 64})
    found = simulate_pipeline(placed, two, tokens=1, micro_batches=2, steps=6)
    assert found.steady
    assert found.cycle_s == pytest.approx(found.first_s, rel=1e-6)
    assert min(found.idle) > 0.4


def test_more_micro_batches_cost_more_when_weights_are_read_for_each() -> None:
    placed, cost = shaped(256)
    cycles = [simulate_pipeline(placed, cost, tokens=1, micro_batches=m).cycle_s for m in (4, 8, 16)]
    assert cycles == sorted(cycles) and cycles[2] > 1.5 * cycles[0]


def test_fill_and_drain_add_up() -> None:
    placed, cost = shaped(512)
    found = simulate_pipeline(placed, cost, tokens=1, micro_batches=16, steps=1)
    alone = simulate(placed, replace(cost, sizes={**cost.sizes, "batch": 32}), tokens=1, overlap="none")
    stages = [stage.elapsed_s for stage in alone.stages]
    slowest = max(stages)
    assert found.fill_s == pytest.approx(sum(stages[:-1]), rel=1e-3)
    assert found.total_s == pytest.approx(sum(stages) + 15 * slowest, rel=1e-2)
    assert found.drain_s > 0
    assert found.cycle_s == pytest.approx(16 * slowest, rel=1e-3)
    assert found.run_tok_s_gpu < found.tok_s_gpu


def test_a_longer_run_hides_fill_and_drain() -> None:
    placed, cost = shaped(256)
    runs = [simulate_pipeline(placed, cost, tokens=1, micro_batches=4, steps=n) for n in (2, 4, 8)]
    rates = [run.run_tok_s_gpu for run in runs]
    assert rates == sorted(rates)
    assert rates[-1] < runs[-1].tok_s_gpu < rates[-1] * 1.2


def test_every_rank_by_itself_runs_the_same_pipeline() -> None:
    placed, cost = placed_model(gpus=8, dp=2, cp=2, pp=2, batch=64)
    slow = [DeviceOverride(gpus=(5,), hbm=0.7)]
    for two_batch in (False, True):
        few, every = (
            simulate_pipeline(
                placed, cost, tokens=1, micro_batches=2, steps=2, two_batch=two_batch, overrides=slow, explicit=explicit
            )
            for explicit in (False, True)
        )
        assert replace(few, operators=0) == replace(every, operators=0)
        assert few.operators < every.operators


def test_halves_of_micro_batches_overlap_too() -> None:
    placed, cost = placed_model(hardware="gb300", gpus=64, dp=32, pp=2, batch=65536)
    plain, halves = (simulate_pipeline(placed, cost, tokens=1, steps=3, two_batch=two) for two in (False, True))
    assert halves.cycle_s < 0.95 * plain.cycle_s
    assert halves.requests == plain.requests


def test_prefill_is_one_step_and_its_rate_is_that_of_the_slowest_stage() -> None:
    placed, cost = placed_model(gpus=8, dp=2, pp=4, batch=16, stage="prefill", context=8192)
    found = simulate_pipeline(placed, cost, tokens=8192, micro_batches=8, steps=1)
    two = replace(cost, sizes={**cost.sizes, "batch": 2})
    alone = simulate(placed, two, tokens=8192, overlap="none", check_memory=False)
    assert found.steady
    assert found.tok_s_gpu == pytest.approx(alone.tok_s_gpu, rel=5e-3)
    assert found.tok_s_user == pytest.approx(8192 / found.first_s)


def test_what_cannot_be_is_refused() -> None:
    placed, cost = shaped(64)
    with pytest.raises(PlacementError, match="64 does not split into 3"):
        simulate_pipeline(placed, cost, tokens=1, micro_batches=3)
    with pytest.raises(ValueRangeError):
        simulate_pipeline(placed, cost, tokens=1, micro_batches=0)
    with pytest.raises(ValueRangeError):
        simulate_pipeline(placed, cost, tokens=1, steps=0)
    large = replace(cost, sizes={**cost.sizes, "batch": 2**17})
    with pytest.raises(CapacityError):
        simulate_pipeline(placed, large, tokens=1)
    found = simulate_pipeline(placed, large, tokens=1, check_memory=False)
    assert isinstance(found, PipelineResult) and max(found.peak_bytes) > found.capacity_bytes
