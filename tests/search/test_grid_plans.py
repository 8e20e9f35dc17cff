"""The grid's plans of every family compute what the unsharded graph computes."""

from __future__ import annotations

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.hw import Cluster
from rooflang.ir.blocks import split_blocks
from rooflang.models import Workload, load
from rooflang.place.grid import grid_plan
from rooflang.search.validate import validate


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize("stage", ["decode", "prefill"])
@pytest.mark.parametrize("model", ["glm-5.3", "kimi-k3"])
def test_requests_over_two_ranks_and_context_over_four(model: str, stage: str, assumptions: Assumptions) -> None:
    graph = load(model).build(Workload(stage=stage, context=65536, batch=8), assumptions)  # type: ignore[arg-type]
    cluster = Cluster.of("b300", 8)
    plan = grid_plan(graph, cluster, dp=2, cp=4, pp=1)
    assert validate(plan, split_blocks(graph), cluster).mesh == (2, 2)
