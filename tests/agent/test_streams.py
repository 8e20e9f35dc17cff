"""Streams and control edges of a session, as the simulation sees them."""

from __future__ import annotations

import pytest

from rooflang.agent import Session
from rooflang.errors import RefusedError
from rooflang.ir.graph import Graph, GraphBuilder

from .graphs import mlp


def two_branches() -> Graph:
    """Two products that do not depend on each other, one of which waits for the network."""
    g = GraphBuilder("branches", batch=64, hidden=4096, wide=65536)
    x = g.input("x", "batch hidden")
    local = g.op("local", "matmul", [x, g.weight("w1", "hidden wide")], "batch wide")
    norm = g.op("norm", "rms_norm", [g.input("z", "batch wide")], "batch wide", over="wide")
    return g.build(local, norm)


def between() -> Graph:
    """A product between a norm and who reads it."""
    g = GraphBuilder("between", batch=64, hidden=4096, wide=65536)
    norm = g.op("norm", "rms_norm", [g.input("z", "batch wide")], "batch wide", over="wide")
    local = g.op("local", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden wide")], "batch wide")
    return g.build(local, g.op("act", "activation", [norm], "batch wide", function="silu"))


def start() -> Session:
    session = Session.start(two_branches(), hardware="b300", gpus=8, overlap="none")
    session.run("split_kernel norm dim=batch\nmerge_gather_broadcast norm")
    return session


def test_streams_overlap_what_is_independent() -> None:
    session = start()
    one = session.simulate()
    session.graph.operator("local").set_compute(stream=1)
    two = session.simulate()
    assert two.step_s < one.step_s
    longest = max(two.stages[0].local_s, one.stages[0].exposed_s)
    assert two.step_s >= longest * (1 - 1e-12)
    session.graph.add_control_edge("local", "norm")
    assert session.simulate().step_s == pytest.approx(one.step_s, rel=1e-9)
    assert session.plan.control == (("local", "norm"),)
    session.graph.remove_control_edge("local", "norm")
    assert session.simulate() == two


def test_what_overlaps_already_is_not_taken_off_twice() -> None:
    session = start()
    session.graph.operator("local").set_compute(stream=1)
    none, perfect = session.simulate(overlap="none"), session.simulate(overlap="perfect")
    assert 0 < none.stages[0].local_s * (1 - 1e-12) <= perfect.step_s <= none.step_s


def test_streams_come_with_the_certificate() -> None:
    session = start()
    session.run("set_compute local stream=2\nadd_control_edge local after=norm")
    again = Session.start(two_branches(), hardware="b300", gpus=8, overlap="none")
    again.follow(session.certificate())
    assert again.certificate() == session.certificate()
    assert again.simulate() == session.simulate()


def test_what_hangs_on_an_order_stays_a_kernel() -> None:
    session = Session.start(mlp(), hardware="b300", gpus=8)
    session.apply("set_compute up stream=1")
    with pytest.raises(RefusedError, match="stream of its own"):
        session.apply("fuse_kernels act inner=up")
    session.apply("set_compute up stream=0")
    session.apply("fuse_kernels act inner=up")
    with pytest.raises(RefusedError, match="no kernel of its own"):
        session.apply("set_compute up stream=1")


def test_collectives_have_streams_too() -> None:
    session = Session.start(between(), hardware="b300", gpus=8, overlap="none")
    session.run("split_kernel norm dim=batch\nmerge_gather_broadcast norm")
    one = session.simulate()
    session.graph.tensor("norm").set_compute("all_gather", stream=1)  # it need not wait for the product any more
    assert session.simulate().step_s < one.step_s
    assert session.plan.streams == {"norm all_gather": 1}
    again = Session.start(between(), hardware="b300", gpus=8, overlap="none")
    again.follow(session.certificate())
    assert again.certificate() == session.certificate()
    for line, said in [
        ("set_compute norm step=all_reduce stream=1", "no norm all_reduce"),
        ("set_compute z step=all_gather stream=1", "z is a input"),
        ("set_compute norm step=all_gather stream=99", "stream 99 of 64"),
    ]:
        with pytest.raises(RefusedError, match=said):
            session.apply(line)
    session.apply("dup_kernel norm")  # and the gather with its stream is gone
    assert session.plan.streams == {}
