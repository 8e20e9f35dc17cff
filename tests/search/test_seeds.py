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
from rooflang.ir.cut import OWNER
from rooflang.place.grid import balanced, grid_plan, layer_labels, partition
from rooflang.search.api import simulate
from rooflang.search.fix import Fixed
from rooflang.search.part import Part, Way
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.seeds import grid_seeds

from .toys import small_flash


@pytest.mark.parametrize("assumptions", ["physical", "paper"])
@pytest.mark.parametrize(
    ("sizes", "stages", "dp", "cp"),
    [((8,), 1, 8, 1), ((2, 4), 1, 2, 4), ((2, 4), 1, 4, 2), ((4,), 2, 4, 1)],
    ids=["dp8", "dp2 cp4", "dp4 cp2, which is a mesh of 2×4 too", "dp4 pp2"],
)
def test_the_grid_is_in_the_space_and_no_faster(
    sizes: tuple[int, ...], stages: int, dp: int, cp: int, assumptions: str
) -> None:
    given = {"hardware": "b300", "gpus": 8, "stage": "decode", "context": 8192, "assumptions": assumptions}
    problem = Problem.of(small_flash(), **given).sharing()
    assert problem.apart
    cost = problem.cost(Mesh.lay(problem.cluster, sizes, stages=stages), np.array([64.0]))
    costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, len(sizes)), cost)
    labels = partition(problem.blocks, balanced(len(layer_labels(problem.blocks)), stages))
    task = Task(costed=costed, at=0, stages=labels)
    grid = simulate(small_flash(), **given, batch=64, dp=dp, cp=cp, pp=stages)
    ((plan, seed),) = (each for each in grid_seeds(problem, costed, stages) if each[0].origin == grid.origin)
    assert Pool(costed=costed).value_s(task, seed)[0] <= grid.sim.step_s * (1 + 1e-9)
    assert not problem.of_plan(plan).apart  # it runs no joint product, which nothing would read


def test_axes_on_other_levels_of_the_fabric_are_other_axes() -> None:
    """On two nodes of eight GPUs an axis of eight is one node, or lies over both."""
    problem = Problem.of(small_flash(), hardware="h200", gpus=16, stage="decode", context=8192)
    for sizes, origins in (((2, 8), {"grid dp2 cp8 ep16 pp1"}), ((8, 2), {"grid dp8 cp2 ep16 pp1"})):
        cost = problem.cost(Mesh.lay(problem.cluster, sizes), np.array([64.0]))
        costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, 2), cost)
        assert {plan.origin for plan, _ in grid_seeds(problem, costed, 1)} == origins


def test_what_one_leader_does_every_rank_does_in_the_space() -> None:
    """In prefill the grid has a leader embed for its group; seeds have everybody embed, which is no slower."""
    given = {"hardware": "b300", "gpus": 8, "stage": "prefill", "context": 8192, "assumptions": "paper"}
    problem = Problem.of(small_flash(), **given)
    plan = grid_plan(problem.graph.resized(batch=2), problem.cluster, dp=2, cp=4, pp=1)
    assert any(OWNER in mode.choices for block in plan.blocks.values() for mode in block.modes.values())
    cost = problem.cost(Mesh.lay(problem.cluster, (2, 4)), np.array([2.0]))
    costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, 2), cost)
    task = Task(costed=costed, at=0, stages=plan.stages)
    grid = simulate(small_flash(), **given, batch=2, dp=2, cp=4)
    (seed,) = (seed for plan, seed in grid_seeds(problem, costed, 1) if plan.origin == grid.origin)
    assert Pool(costed=costed).value_s(task, seed)[0] <= grid.sim.step_s * (1 + 1e-9)


def test_a_plan_that_the_space_lacks_is_left_out() -> None:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, stage="decode", context=8192)
    cost = problem.cost(Mesh.lay(problem.cluster, (8,)), np.array([64.0]))
    costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, 1), cost)
    assert list(grid_seeds(problem, costed, 1))
    name, kind = next(iter(costed.kinds.items()))
    shape = replace(kind.shape, modes=())
    empty = replace(kind, shape=shape, local_s=kind.local_s[:0], exposed_s=kind.exposed_s[:0])
    assert not list(grid_seeds(problem, replace(costed, kinds={**costed.kinds, name: empty}), 1))


def test_plans_of_a_mesh_have_their_axes_in_its_order() -> None:
    """As simulated one by one, where the objective is only a lower bound; their times do not depend on the order."""
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, stage="decode", context=8192).sharing()
    part = Part.of(Way(problem=problem, batches=(64,), overlap="two-batch", fixed=Fixed(mesh=(2, 4))), 1, Progress())
    (config,) = part.found
    assert {plan.mesh for plan, _, _ in config.seeds} == {
        Mesh.lay(problem.cluster, (2, 4)),
        Mesh.lay(problem.cluster, (4, 2)),
    }
    plans = [plan for _, _, plan in config.seeded(0)]
    assert [plan.mesh for plan in plans] == [Mesh.lay(problem.cluster, (2, 4))] * 2
    for laid, (plan, _, _) in zip(plans, config.seeds):
        theirs, ours = (part._steps(each, [0]).step_s[0] for each in (plan, laid))
        assert ours == pytest.approx(theirs, rel=1e-9)
