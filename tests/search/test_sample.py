"""What is evaluated of a plan: every kernel that is laid in a way of its own, once; what is wrong there is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir.blocks import Blocks, split_blocks
from rooflang.ir.cut import PARTIAL, Cut
from rooflang.ir.layout import make_mode, make_transfer
from rooflang.ir.tensor import Role
from rooflang.models import Workload
from rooflang.place.grid import grid_plan
from rooflang.place.plan import BlockPlan, Plan
from rooflang.search.sample import Sample
from rooflang.search.validate import evaluated

from .toys import small_flash


def planned(dp: int = 2, cp: int = 4) -> tuple[Plan, Blocks]:
    """A grid plan of six layers of DeepSeek V4 Flash on 8 GPUs."""
    graph = small_flash().build(Workload(stage="decode", context=8192, batch=8))
    return grid_plan(graph, Cluster.of("b300", 8), dp=dp, cp=cp, pp=1), split_blocks(graph)


def changed(plan: Plan, kind: str, change: Callable[[BlockPlan], BlockPlan]) -> Plan:
    return replace(plan, blocks={**plan.blocks, kind: change(plan.blocks[kind])})


def test_kernels_that_are_alike_are_evaluated_once() -> None:
    plan, blocks = planned()
    sample = Sample(plan, blocks)
    all_ = [mode for block in plan.blocks.values() for mode in block.modes.values()]
    assert len(sample.modes) < len(all_)
    kinds = {mode.op.kind for mode in all_}
    assert {mode.op.kind for mode in sample.modes.values()} == kinds
    partial = [mode for mode in all_ if PARTIAL in mode.out]
    assert partial
    assert {m.op.output.name for m in partial} <= set(sample.modes)


def test_what_is_left_out_is_given_to_its_readers() -> None:
    plan, blocks = planned()
    graph = Sample(plan, blocks).graph()
    made = {op.output.name for op in graph.ops}
    given = [leaf for leaf in graph.leaves if leaf.name in blocks.graph.producer]
    assert given
    assert all(leaf.role is Role.INPUT and leaf.name not in made for leaf in given)


def test_a_plan_that_is_right_is_accepted_whatever_the_seed() -> None:
    plan, blocks = planned()
    for seed in range(3):
        assert evaluated(plan, blocks, seed=seed).mesh == (2, 2)


@pytest.mark.parametrize("at", [0, -1])
def test_a_lost_collective_is_found_in_the_first_block_and_in_the_last(at: int) -> None:
    plan, blocks = planned()

    def moving(block: BlockPlan) -> list[tuple[str, int]]:
        return [key for key, path in block.paths.items() if any(not step.free for step in path)]

    kind = [k.name for k in blocks.kinds if moving(plan.blocks[k.name])][at]

    def lose(block: BlockPlan) -> BlockPlan:
        return replace(block, paths={key: path for key, path in block.paths.items() if key != moving(block)[-1]})

    with pytest.raises(PlacementError):
        evaluated(changed(plan, kind, lose), blocks)


def test_a_sum_taken_for_a_whole_is_found() -> None:
    """One kernel of one block says that its partial output is whole."""
    plan, blocks = planned()
    kinds = [k.name for k in blocks.kinds if any(PARTIAL in m.out for m in plan.blocks[k.name].modes.values())]

    def lie(block: BlockPlan) -> BlockPlan:
        name, mode = next((n, m) for n, m in block.modes.items() if PARTIAL in m.out)
        choices = [replace(c, out="R") if isinstance(c, Cut) and c.out == PARTIAL else c for c in mode.choices]
        after = make_mode(mode.op, choices)
        paths = {
            key: tuple(make_transfer(s.tensor, after.out, s.after) for s in path if after.out != s.after)
            if path and path[0].before == mode.out
            else path
            for key, path in block.paths.items()
        }
        return replace(block, modes={**block.modes, name: after}, paths=paths)

    with pytest.raises(PlacementError):
        evaluated(changed(plan, kinds[-1], lie), blocks)


def test_a_kernel_runs_where_what_it_makes_is_covered_by_another_one() -> None:
    """A kernel of two operators that is left out, the second of which a kernel that stays covers as well."""
    plan, blocks = planned()
    kept = Sample(plan, blocks).modes
    kind, first, second = next(
        (kind.name, one.name, two.name)
        for kind in blocks.kinds
        for one, two in zip(kind.ops, kind.ops[1:])
        if one.name not in kept and two.name not in kept and kept.keys() & plan.blocks[kind.name].modes.keys()
    )
    (stays, *_) = kept.keys() & plan.blocks[kind].modes.keys()

    def change(block: BlockPlan) -> BlockPlan:
        both = replace(block.modes[second], covers=(first, second))
        more = replace(block.modes[stays], covers=(*block.modes[stays].covers, second))
        return replace(block, modes={**block.modes, second: both, stays: more})

    assert second in Sample(changed(plan, kind, change), blocks).modes
