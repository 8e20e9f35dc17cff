"""Fusions that follow each other: gate·up·activation, and a norm before."""

from __future__ import annotations

import pytest

import rooflang
from rooflang.agent import Session
from rooflang.errors import RefusedError
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.search.validate import validate


def gated() -> Graph:
    """A norm, the projections of gate and up, their product, and the way back."""
    g = GraphBuilder("gated", batch=64, hidden=1024, ffn=4096, back=1024)
    norm = g.op("norm", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden")
    gate = g.op("gate", "matmul", [norm, g.weight("w1", "hidden ffn")], "batch ffn")
    up = g.op("up", "matmul", [norm, g.weight("w3", "hidden ffn")], "batch ffn")
    act = g.op("act", "gated_activation", [gate, up], "batch ffn")
    return g.build(g.op("down", "matmul", [act, g.weight("w2", "ffn back")], "batch back"))


def test_what_the_search_fused_in_three_steps_is_fused_in_three_actions() -> None:
    point = rooflang.optimize(gated(), hardware="b300", gpus=8, batch=[64]).frontier[0]
    session = Session.start(gated(), hardware="b300", gpus=8, batch=64)
    session.follow(point.certificate)
    (kind,) = session.placed.blocks.kinds
    assert session.plan.blocks[kind.name].modes["act"].covers == ("norm", "up", "gate", "act")
    assert session.certificate() == {key: value for key, value in point.certificate.items() if key != "evaluated"}


def test_an_operator_is_computed_inside_a_fused_one() -> None:
    session = Session.start(gated(), hardware="b300", gpus=8, batch=64)
    proposed = [str(p.action) for p in session.actions("fuse_kernels", predict=False)]
    assert any("act" in action and "gate" in action for action in proposed)
    with pytest.raises(RefusedError):
        session.graph.fuse_kernels("act", "up")
    session.graph.fuse_kernels("act", "gate")
    session.graph.fuse_kernels("act", "up")
    session.graph.split_kernel("act", "ffn")
    session.graph.split_kernel("down", "ffn")
    (kind,) = session.placed.blocks.kinds
    mode = session.plan.blocks[kind.name].modes["act"]
    assert mode.op.kind == "gated_projections"
    assert [t.name for t in mode.op.operands] == ["norm", "w1", "w3"]
    assert set(session.plan.blocks[kind.name].modes) == {"norm", "act", "down"}
    assert validate(session.plan, session.placed.blocks, session.problem.cluster)
