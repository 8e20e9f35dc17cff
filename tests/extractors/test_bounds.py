"""Quick lower bounds over all partitions of a pipeline: against every partition by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from rooflang.eqsat import saturate_all
from rooflang.extractors.bounds import quick_bounds_s
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.memory import least_bytes
from rooflang.extractors.task import Task
from rooflang.hw import Mesh
from rooflang.ir.graph import GraphBuilder
from rooflang.place.grid import partition
from rooflang.search.problem import Problem

#: Widths of layers, so that an even partition is not the best one.
WIDTHS = (64, 64, 512, 64, 128, 64)


@pytest.mark.parametrize("stages", [2, 3])
def test_over_all_partitions_it_is_the_least_of_each_ones(stages: int) -> None:
    g = GraphBuilder("uneven", batch=64, hidden=1024, **{f"ffn{width}": 16 * width for width in WIDTHS})
    x = g.input("x", "batch hidden")
    for layer, width in enumerate(WIDTHS):
        g.block = f"layers.{layer}"
        up = g.op(f"up{layer}", "matmul", [x, g.weight(f"u{layer}", f"hidden ffn{width}")], f"batch ffn{width}")
        x = g.op(f"down{layer}", "matmul", [up, g.weight(f"d{layer}", f"ffn{width} hidden")], "batch hidden")
    problem = Problem.of(g.build(x), hardware="b300", gpus=stages)
    cost = problem.cost(Mesh.lay(problem.cluster, (), stages=stages), np.array([1.0, 64.0, 1000.0]))
    costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, 0), cost)
    every = []
    for cuts in combinations(range(1, len(WIDTHS)), stages - 1):
        counts = [after - before for before, after in pairwise((0, *cuts, len(WIDTHS)))]
        every.append(Task(costed=costed, at=0, stages=partition(problem.blocks, counts)))
    alone = np.array([quick_bounds_s(task) for task in every])
    for task in every:
        over_all = quick_bounds_s(task, repartition=True)
        assert np.all(over_all <= alone.min(axis=0) * (1 + 1e-12))
        assert np.all(over_all >= 0.99 * alone.min(axis=0))
    lopsided = every[0]
    assert np.any(quick_bounds_s(lopsided) > 1.05 * quick_bounds_s(lopsided, repartition=True))
    fullest = [float(least_bytes(task)[0]) for task in every]
    room = (min(fullest) + fullest[0]) / 2  # another partition fits
    tight = replace(lopsided, reserve_bytes=problem.cluster.device.hbm_bytes - room)
    assert np.all(np.isinf(quick_bounds_s(tight))) and np.all(np.isfinite(quick_bounds_s(tight, repartition=True)))
    serial = replace(lopsided, objective="sum")
    assert np.all(quick_bounds_s(serial, repartition=True) <= quick_bounds_s(serial) * (1 + 1e-12))
