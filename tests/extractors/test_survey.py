"""A first look: what it promises is true, and what it finds can be had."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflang.eqsat import saturate_all
from rooflang.extractors import ilp
from rooflang.extractors.bounds import quick_bounds_s
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.memory import fullest
from rooflang.extractors.survey import Survey, _anchors
from rooflang.extractors.task import Objective, Task
from rooflang.hw import Mesh
from rooflang.place.grid import balanced, layer_labels, partition
from rooflang.search.problem import Problem

from ..search.toys import small_flash

BATCHES = (1, 8, 64, 512, 4096)


def task_of(stages: int, objective: Objective) -> Task:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, stage="decode", context=8192)
    cost = problem.cost(Mesh.lay(problem.cluster, (8 // stages,), stages=stages), np.array(BATCHES, np.float64))
    costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, 1), cost)
    labels = partition(problem.blocks, balanced(len(layer_labels(problem.blocks)), stages))
    return Task(costed=costed, at=0, stages=labels, objective=objective)


@pytest.mark.parametrize("objective", ["max", "sum"])
@pytest.mark.parametrize("stages", [1, 2])
def test_bounds_hold_and_plans_fit(stages: int, objective: Objective) -> None:
    task = task_of(stages, objective)
    found = Survey.of(task, quick_bounds_s(task), repartition=False)
    for at in range(len(BATCHES)):
        here = replace(task, at=at)
        best = ilp.extract(here, gap=1e-4)
        assert found.bounds_s[at] <= best.value_s * (1 + 1e-9)
        known = found.best(at)
        assert known is not None
        assert best.value_s * (1 - 1e-3) <= known.value_s
        assert known.value_s == pytest.approx(float(found.pool.value_s(here, known.decisions)[at]), rel=1e-12)
        assert fullest(replace(here, stages=known.stages), known.decisions).share <= 1.0


def test_what_does_not_fit_is_not_promised() -> None:
    task = task_of(1, "max")
    tight = replace(task, reserve_bytes=0.999 * task.capacity_bytes)
    found = Survey.of(tight, quick_bounds_s(task), repartition=False)
    assert found.best(len(BATCHES) - 1) is None


def test_batch_sizes_that_are_looked_at_are_apart() -> None:
    assert _anchors((1, 2, 4, 8, 16, 32, 64), [0, 1, 2, 3, 4, 5, 6]) == [0, 3, 6]
    assert _anchors((1, 2, 4), [1]) == [1]
    assert _anchors((1, 2, 4), []) == []
