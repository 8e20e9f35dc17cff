"""The frozen block: it is closed, names its e-nodes, and says what is in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.eqsat import FrozenBlock, enodes, saturate, saturate_all
from rooflang.hw.cluster import Cluster
from rooflang.ir import make_mode, make_transfer, signature
from rooflang.ir.tensor import RESIDENT_ROLES
from rooflang.place.grid import grid_plan

from .blocks import CASES, largest, layer, mlps, v4_pro


def made(block: FrozenBlock) -> set[tuple[str, tuple[str, ...]]]:
    """(alias class, spec) of every view that a record of the block makes."""
    views = {(block.aliases[mode.op.output.name], mode.out) for mode in block.modes}
    views |= {(t.tensor, t.after) for t in block.transfers}
    views |= {(block.aliases[hold.leaf], hold.spec) for hold in block.holds}
    return views | {(block.aliases[arrival.port], arrival.spec) for arrival in block.arrivals}


def read(block: FrozenBlock) -> set[tuple[str, tuple[str, ...]]]:
    """(alias class, spec) of every view that a record of the block reads, or that the block hands over."""
    views = {
        (block.aliases[tensor.name], spec)
        for mode in block.modes
        for tensor, spec in zip(mode.op.operands, mode.operands, strict=True)
    }
    views |= {(t.tensor, t.before) for t in block.transfers}
    return views | {(block.aliases[name], spec) for name, specs in block.exits.items() for spec in specs}


@pytest.mark.parametrize("axes", [0, 1, 2])
@pytest.mark.parametrize(("stage", "profile"), CASES)
def test_whatever_is_read_can_be_made_and_whatever_is_made_is_read(stage: str, profile: str, axes: int) -> None:
    block = saturate(largest(v4_pro(stage, profile)), axes)
    assert made(block) == read(block)


@pytest.mark.parametrize(("stage", "profile"), CASES)
def test_a_block_arrives_and_leaves_whole_or_cut_never_partial_or_owned(stage: str, profile: str) -> None:
    block = saturate(largest(v4_pro(stage, profile)), 2)
    specs = [arrival.spec for arrival in block.arrivals] + [spec for each in block.exits.values() for spec in each]
    assert specs
    assert not {"P", "O"} & {entry for spec in specs for entry in spec}
    stream = block.kind.outputs[-1].name
    assert ("R", "R") in block.exits[stream]
    assert ("batch", "batch") in block.exits[stream]


@pytest.mark.parametrize(("stage", "profile"), CASES)
def test_resident_tensors_never_move(stage: str, profile: str) -> None:
    block = saturate(largest(v4_pro(stage, profile)), 2)
    tensors = {t.name: t for op in block.kind.ops for t in (*op.operands, op.output)}
    moved = {tensors[t.tensor] for t in block.transfers}
    assert moved
    assert not {t.name for t in moved if t.role in RESIDENT_ROLES}
    assert not moved & set(block.kind.leaves)
    assert not moved & {op.output for op in block.kind.ops if op.kind == "kv_append"}


def test_every_record_names_its_e_node() -> None:
    block = saturate(layer(mlps(2)), 2)
    for mode in block.modes:
        run, term = enodes(mode)
        assert run.startswith(f"(Run{len(mode.operands)} {mode.op.name} ")
        assert term.startswith(f"(Op{len(mode.operands)} {mode.op.name} ")
    records = (*block.modes, *block.transfers, *block.holds, *block.arrivals)
    names = [enodes(record)[0] for record in records]
    assert len(names) == len(set(names))
    assert "(AllReduce P,R R,R (View layers.0.down P,R))" in names
    assert "(Run2 layers.0.up R,ffn (View layers.0.norm R,R) (View layers.0.w1 R,ffn))" in names
    assert "(Hold layers.0.w1 R,ffn nvme)" in names
    assert "(PortAt x batch,R)" in names


def test_modes_are_runs_one_to_one() -> None:
    block = saturate(layer(mlps(2)), 2)
    assert len(block.modes) <= sum(n for name, n in block.stats.enodes.items() if name.startswith("Run"))
    assert len({(m.op.name, m.operands, m.out) for m in block.modes}) == len(block.modes)


@pytest.mark.parametrize(("stage", "profile"), CASES)
@pytest.mark.parametrize(("dp", "cp"), [(8, 1), (1, 8), (2, 4)])
def test_the_grid_s_plans_are_members(stage: str, profile: str, dp: int, cp: int) -> None:
    blocks = v4_pro(stage, profile)
    plan = grid_plan(blocks.graph, Cluster.of("b300", 8), dp=dp, cp=cp, pp=1)
    frozen = saturate_all(blocks, len(plan.mesh.axes))
    for kind in blocks.kinds:
        chosen = plan.blocks[kind.name]
        steps = [step for path in (*chosen.paths.values(), *chosen.exits.values()) for step in path]
        assert frozen[kind.name].missing(chosen.modes.values(), steps) == ()


def test_what_is_not_there_is_told() -> None:
    kind = layer(mlps(2))
    block = saturate(kind, 1)
    up, y = (next(op for op in kind.ops if op.name.endswith(end)) for end in (".up", ".y"))
    known = make_mode(up, (signature(up)[0],))
    partial_residual = make_mode(y, (signature(y)[-1],))
    renamed = make_mode(replace(up, name="other"), ("R",))
    known_step = make_transfer("layers.0.up", ("batch",), ("R",))
    unknown_step = make_transfer("layers.0.up", ("seq",), ("R",))
    assert block.contains([known], [known_step])
    assert block.missing([known, partial_residual, renamed], [known_step, unknown_step]) == (
        partial_residual,
        renamed,
        unknown_step,
    )
