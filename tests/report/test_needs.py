"""What a model needs per token agrees with what the paper prints, and with the cost model."""

from __future__ import annotations

import numpy as np
import pytest

from rooflang.hw import Cluster
from rooflang.models.tables import GIB, MIB, published_rows
from rooflang.place.grid import grid_plan
from rooflang.place.lower import lower
from rooflang.report.needs import PARTS, Need, model_needs
from rooflang.search.problem import Problem
from rooflang.sim.costs import LiftedCosts


@pytest.mark.parametrize("model", ["deepseek-v4-flash", "glm-5.3"])
def test_weights_and_cache_are_those_of_the_tables(model: str) -> None:
    row = next(row for row in published_rows() if row.model == model and row.context == 2**16)
    (step,) = model_needs(model, stage="decode", contexts=[2**16], batches=[row.batch], assumptions="paper")
    assert step.total.weight_bytes / MIB == pytest.approx(row.weight_mib, abs=1e-3)
    assert step.total.kv_bytes / GIB == pytest.approx(row.kv_read_gib, abs=1e-3)


def test_parts_add_up_and_weights_are_shared_by_the_batch() -> None:
    one, many = model_needs("deepseek-v4-pro", stage="decode", contexts=[2**16], batches=[1, 4096])
    assert set(one.parts) == set(PARTS)
    assert one.total.bytes == pytest.approx(sum(need.bytes for need in one.parts.values()))
    assert one.total.kv_bytes == pytest.approx(many.total.kv_bytes)
    assert one.total.total_flops == pytest.approx(many.total.total_flops)
    assert many.total.weight_bytes < one.total.weight_bytes / 100
    assert many.total.intensity > 50 * one.total.intensity


@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_times_are_those_of_the_cost_model_on_one_gpu(stage: str) -> None:
    """Memory of all operators, each on one whole device: what the cost model says of a plan without any cut."""
    problem = Problem.of("deepseek-v4-flash", hardware="b300", gpus=1, stage=stage, context=4096)
    plan = grid_plan(problem.graph.resized(batch=2), problem.cluster, dp=1, cp=1, pp=1)
    costs = LiftedCosts(problem.cost(plan.mesh, 2))
    found = [costs.of(op) for op in lower(plan, problem.blocks).ops]
    memory_s, compute_s = (float(np.sum([getattr(cost, name) for cost in found])) for name in ("memory_s", "compute_s"))
    (step,) = model_needs("deepseek-v4-flash", stage=stage, contexts=[4096], batches=[2])
    tokens = 2 * problem.tokens
    device = Cluster.of("b300", 1).device
    assert step.total.memory_s(device) * tokens == pytest.approx(memory_s)
    assert step.total.compute_s(device) * tokens == pytest.approx(compute_s)


def test_what_needs_nothing_has_no_bound() -> None:
    assert Need(flops={"fp8": 2.0}).intensity == float("inf")
