"""The grid's plans are in the e-graph's space, and known to its search from the start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflang.eqsat import saturate_all
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.pool import Pool
from rooflang.extractors.task import Task
from rooflang.hw import Mesh
from rooflang.place.grid import balanced, layer_labels, partition
from rooflang.search.api import simulate
from rooflang.search.problem import Problem
from rooflang.search.seeds import grid_seeds

from .toys import small_flash


@pytest.mark.parametrize("assumptions", ["physical", "paper"])
@pytest.mark.parametrize(("sizes", "stages", "dp", "cp"), [((8,), 1, 8, 1), ((2, 4), 1, 2, 4), ((4,), 2, 4, 1)])
def test_the_grid_is_in_the_space_and_no_faster(
    sizes: tuple[int, ...], stages: int, dp: int, cp: int, assumptions: str
) -> None:
    given = {"hardware": "b300", "gpus": 8, "stage": "decode", "context": 8192, "assumptions": assumptions}
    problem = Problem.of(small_flash(), **given)
    cost = problem.cost(Mesh.lay(problem.cluster, sizes, stages=stages), np.array([64.0]))
    costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, len(sizes)), cost)
    labels = partition(problem.blocks, balanced(len(layer_labels(problem.blocks)), stages))
    task = Task(costed=costed, at=0, stages=labels)
    seeds = list(grid_seeds(problem, costed, stages))
    assert seeds
    grid = simulate(small_flash(), **given, batch=64, dp=dp, cp=cp, pp=stages)
    values = [float(Pool(costed=costed).value_s(task, seed)[0]) for seed in seeds]
    assert min(values) <= grid.sim.step_s * (1 + 1e-9)


def test_a_plan_that_the_space_lacks_is_left_out() -> None:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, stage="decode", context=8192)
    cost = problem.cost(Mesh.lay(problem.cluster, (8,)), np.array([64.0]))
    costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, 1), cost)
    assert list(grid_seeds(problem, costed, 1))
    name, kind = next(iter(costed.kinds.items()))
    empty = replace(kind, modes=(), local_s=kind.local_s[:0], exposed_s=kind.exposed_s[:0])
    assert not list(grid_seeds(problem, replace(costed, kinds={**costed.kinds, name: empty}), 1))
