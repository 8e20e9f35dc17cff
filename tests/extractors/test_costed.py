"""What an extraction starts from: costs for all batch sizes at once, and nothing that cannot matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflang.assumptions import PHYSICAL
from rooflang.cost import CostModel
from rooflang.errors import PlacementError
from rooflang.extractors.bounds import quick_bounds_s
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.ilp import extract
from rooflang.extractors.task import Task
from rooflang.ir.cut import OWNER

from .graphs import Case, fusable, residual, two_layers
from .oracle import enumerated

BATCHES = (2, 6, 8, 512)


def many(case: Case) -> CostedGraph:
    cost = CostModel.of(case.graph, case.cost.cluster, case.cost.mesh, PHYSICAL, batch=np.array(BATCHES))
    return CostedGraph.of(case.blocks, case.frozen, cost)


def test_all_batch_sizes_at_once_are_each_alone() -> None:
    case = Case.of(residual(layers=2), mesh=(4,))
    costed = many(case)
    assert costed.batches == BATCHES
    bounds = quick_bounds_s(Task(costed=costed, at=0, stages=(case.blocks.sequence,)))
    for at, batch in enumerate(BATCHES):
        alone = Case.of(residual(batch, layers=2), mesh=(4,))
        for name, kind in costed.kinds.items():
            modes = {mode.mode: number for number, mode in enumerate(kind.modes)}
            single = alone.costed.kinds[name]
            for number, mode in enumerate(single.modes):
                assert kind.local_s[modes[mode.mode], at] == single.local_s[number, 0]
                assert kind.exposed_s[modes[mode.mode], at] == single.exposed_s[number, 0]
            for value, other in zip(kind.values, single.values):
                order = [value.layouts.number[spec] for spec in other.layouts.specs]
                seconds = value.layouts.closure.seconds[np.ix_(order, order)]
                assert np.allclose(seconds[:, :, at], other.layouts.closure.seconds[:, :, 0], rtol=1e-12)
        task = Task(costed=costed, at=at, stages=(case.blocks.sequence,))
        assert extract(task, gap=0.0).value_s == pytest.approx(extract(alone.task(), gap=0.0).value_s, rel=1e-9)
        assert bounds[at] == pytest.approx(quick_bounds_s(alone.task())[0])


def test_what_does_not_divide_costs_infinity() -> None:
    case = Case.of(two_layers(), mesh=(4,))
    kind = many(case).kinds["layers.0"]
    cut = [n for n, mode in enumerate(kind.modes) if mode.mode.out == ("batch",)]
    assert np.isinf(kind.local_s[cut]).tolist() == [[True, True, False, False]] * len(cut)
    assert np.isfinite(kind.local_s[[n for n in range(len(kind.modes)) if n not in cut]]).all()


def test_owners_are_left_out_where_replicas_do_as_well() -> None:
    graph = residual()
    with_owners, without = (Case.of(graph, mesh=(4,), owners=owners) for owners in (True, False))
    assert any(OWNER in mode.out for mode in with_owners.frozen["layers.0"].modes)
    assert all(OWNER not in m.mode.out for kind in with_owners.costed.kinds.values() for m in kind.modes)
    values = [extract(case.task(), gap=0.0).value_s for case in (with_owners, without)]
    assert values[0] == values[1]


def test_owners_stay_where_replicas_were_disabled() -> None:
    case = Case.of(residual(), mesh=(4,), owners=True)
    frozen = {
        name: replace(block, modes=tuple(m for m in block.modes if set(m.choices) != {"R"}))
        for name, block in case.frozen.items()
    }
    costed = CostedGraph.of(case.blocks, frozen, case.cost)
    assert any(OWNER in mode.mode.out for kind in costed.kinds.values() for mode in kind.modes)
    found = extract(Task(costed=costed, at=0, stages=(case.blocks.sequence,)), gap=0.0)
    assert found.value_s >= extract(case.task(), gap=0.0).value_s


def test_copies_are_their_operand() -> None:
    kind = Case.of(fusable(copy=True), mesh=(4,), saturate=True).costed.kinds["block0"]
    assert kind.aliases == {"copy": "up"}
    assert "copy" not in {value.tensor.name for value in kind.values}
    assert all(mode.mode.op.kind != "to_hbm" for mode in kind.modes)


def test_blocks_that_cannot_meet_are_refused() -> None:
    case = Case.of(two_layers(), mesh=(4,))
    blocks = {name: enumerated(case.blocks.by_name[name], 1) for name in case.frozen}
    start = blocks["start"]
    blocks["start"] = replace(start, exits={"x": (("vocab",),)})
    with pytest.raises(PlacementError, match="suits all blocks"):
        CostedGraph.of(case.blocks, blocks, case.cost)
