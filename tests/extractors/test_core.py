"""What is left of tables whose states are too many, against trying every combination of states."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.eqsat import saturate_all
from rooflang.extractors import dual as duals
from rooflang.extractors.core import Diffusion, core
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.dual import Dual
from rooflang.extractors.forms import Weights
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.pool import Pool
from rooflang.extractors.tables import Tables
from rooflang.extractors.task import Task
from rooflang.hw import Mesh
from rooflang.place.grid import balanced, layer_labels, partition
from rooflang.search.problem import Problem

from ..search.toys import small_flash
from .test_tables import SIZES, Sum, built, sums, value


def all_values(tables: Sum) -> dict[tuple[int, ...], float]:
    return {states: value(tables, states) for states in product(*map(range, SIZES))}


@given(sums(), st.sampled_from([0.01, 0.3, 2.0]))
def test_whatever_has_a_state_that_was_left_out_costs_the_floor_at_least(tables: Sum, part: float) -> None:
    diffusion = Diffusion(SIZES, built([tables]).parts)
    diffusion.cut(part)
    found = diffusion.core
    for states, cost in all_values(tables).items():
        if not all(state in alive for state, alive in zip(states, found.alive)):
            assert cost >= found.floor


@given(sums())
def test_moving_costs_keeps_every_sum_and_raises_the_bound(tables: Sum) -> None:
    diffusion = Diffusion(SIZES, built([tables]).parts)
    before = diffusion.bound
    diffusion.cut(np.inf)
    assert before * (1 - 1e-12) <= diffusion.bound <= min(all_values(tables).values()) * (1 + 1e-12)


@given(sums(), st.integers(1, 200), st.sampled_from([(), (2,), (3, 1)]))
def test_the_least_is_among_the_states_that_are_left_or_is_the_floor(
    tables: Sum, limit: int, keep: tuple[int, ...]
) -> None:
    whole = built([tables])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rooflang.extractors.core._MANY", 1)  # so that small variables are thinned, too
        found = core(Diffusion(SIZES, whole.parts), keep, partial(whole.largest, keep), limit)
    left = Tables()
    for alive in found.alive:
        left.variable(len(alive))
    for names, table in whole.parts:
        left.add(names, table[np.ix_(np.arange(1), *(found.alive[name] for name in names))])
    least: FloatArray = left.eliminate(keep, 10_000)[0]
    costs = all_values(tables)
    for kept in product(*(range(len(found.alive[name])) for name in keep)):
        there = {name: int(found.alive[name][state]) for name, state in zip(keep, kept)}
        exact = min(cost for states, cost in costs.items() if all(states[n] == s for n, s in there.items()))
        assert least[kept] == exact or min(exact, least[kept]) >= found.floor
    assert min(costs.values()) == least.min() or min(costs.values()) >= found.floor


def test_by_their_core_kinds_have_the_minima_that_elimination_finds() -> None:
    problem = Problem.of(small_flash(), hardware="b300", gpus=8, stage="decode", context=8192)
    cost = problem.cost(Mesh.lay(problem.cluster, (2, 4)), np.array([8.0, 512.0]))
    costed = CostedGraph.of(problem.blocks, saturate_all(problem.blocks, 2), cost)
    task = Task(costed=costed, at=0, stages=partition(problem.blocks, balanced(len(layer_labels(problem.blocks)), 1)))
    points = tuple((at, Weights(local=share, exposed=1.0 - share)) for at in (0, 1) for share in (0.5, 0.9))
    whole = Dual(costed, (0, 1), None).minima(task, task.loads[0], points, 10_000_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duals, "FEW_AXES", 0)
        patch.setattr(duals, "FAR", 0)
        found = Dual(costed, (0, 1), None).minima(task, task.loads[0], points, 1_000_000)
    pool = Pool(costed=costed)
    for (at, weights), exact, mine in zip(points, whole, found):
        local, exposed = pool.stage_s(task, task.loads[0], mine.decisions)
        cost_s = weights.local * local[at] + weights.exposed * exposed[at]
        assert exact.exact
        assert 0.98 * exact.value <= mine.value <= exact.value * (1 + 1e-9)
        assert cost_s >= exact.value * (1 - 1e-9)
        if mine.exact:
            assert cost_s == pytest.approx(exact.value, rel=1e-9)
    assert any(mine.exact for mine in found)
