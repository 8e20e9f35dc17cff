"""Outlines: what is drafted once serves all meshes of as many axes, each of which prices it by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflang.cost.tiers import HBM
from rooflang.eqsat import saturate_all
from rooflang.errors import PlacementError
from rooflang.extractors.costed import CostedGraph, CostedKind
from rooflang.extractors.outline import Draft, Numbers, Outlines
from rooflang.extractors.readers import needed_values, readers_of
from rooflang.hw import Mesh
from rooflang.ir.cut import OWNER
from rooflang.search.problem import Problem
from tests.search.toys import small_flash

BATCHES = (1, 8, 12, 64)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(small_flash(), hardware="b300", gpus=16, stage="decode", context=8192)


def priced(problem: Problem, sizes: tuple[int, ...], stages: int, batches: tuple[int, ...] = BATCHES) -> CostedGraph:
    cost = problem.cost(Mesh.lay(problem.cluster, sizes, stages=stages), np.array(batches, np.float64))
    return CostedGraph.of(problem.blocks, saturate_all(problem.blocks, len(sizes)), cost)


def same(one: CostedKind, other: CostedKind) -> bool:
    return one.shape is other.shape


def test_a_mesh_prices_its_modes_itself(problem: Problem) -> None:
    costed = priced(problem, (2, 4), 2)
    for kind in costed.kinds.values():
        assert len(kind.modes) == len(kind.local_s) > 0
        for number in range(0, len(kind.modes), 17):
            cost = costed.cost.mode(kind.modes[number].mode)
            assert np.array_equal(kind.local_s[number], np.broadcast_to(cost.local_s, len(BATCHES)))
            assert np.array_equal(kind.exposed_s[number], np.broadcast_to(cost.exposed_s, len(BATCHES)))
        for value in kind.values:
            sizes = [costed.cost.bytes(value.tensor, spec) for spec in value.layouts.specs]
            assert all(np.array_equal(mine, np.broadcast_to(size, 4)) for mine, size in zip(value.bytes, sizes))


def test_meshes_on_which_the_same_modes_run_share_the_shape(problem: Problem) -> None:
    one, other, larger = (priced(problem, sizes, 16 // np.prod(sizes)) for sizes in ((2, 2), (2, 2), (4, 4)))
    for name, kind in one.kinds.items():
        assert same(kind, other.kinds[name])
        assert readers_of(kind) is readers_of(other.kinds[name])
        assert needed_values(kind) is needed_values(other.kinds[name])
        runs = {id(mode.mode) for mode in kind.modes}
        assert same(kind, larger.kinds[name]) == (runs == {id(mode.mode) for mode in larger.kinds[name].modes})
    assert not all(same(kind, larger.kinds[name]) for name, kind in one.kinds.items())


def test_a_shared_shape_is_what_would_be_drafted_anew(problem: Problem) -> None:
    frozen = saturate_all(problem.blocks, 2)
    for outline in Outlines.of(problem.blocks, frozen, {}, (HBM,)).kinds.values():
        runs = np.arange(len(outline.runs)) % 3 > 0
        known, again = (
            outline.that_can_run(runs),
            outline.shape([Draft(run=outline.runs[n]) for n in np.flatnonzero(runs)]),
        )
        assert known is outline.that_can_run(runs.copy()) is not again
        assert known.modes == again.modes and known.held == again.held
        for one, other in zip(known.values, again.values, strict=True):
            assert (one.places.specs, one.places.steps, one.alike) == (
                other.places.specs,
                other.places.steps,
                other.alike,
            )


def test_no_owner_runs_alone_where_replicas_can(problem: Problem) -> None:
    found = Outlines.of(problem.blocks, saturate_all(problem.blocks, 1), {}, (HBM,))
    assert all(OWNER not in run.mode.choices for outline in found.kinds.values() for run in outline.runs)


def test_blocks_that_agree_on_no_layout_are_refused(problem: Problem) -> None:
    frozen = saturate_all(problem.blocks, 1)
    name = problem.blocks.kinds[-1].name
    strange = tuple(replace(arrival, spec=("strange",)) for arrival in frozen[name].arrivals)
    with pytest.raises(PlacementError, match=r"no layout of .* suits all blocks"):
        Outlines.of(problem.blocks, {**frozen, name: replace(frozen[name], arrivals=strange)}, {}, (HBM,))


def test_equal_things_have_one_number() -> None:
    numbers = Numbers()
    one, other = ("a", (1, 2)), ("a", (1, 2))
    assert numbers.of(one) == numbers.of(other) == numbers.once(("a", (1, 2)))
    assert numbers.of(one) != numbers.of(("a", (2, 1)))
