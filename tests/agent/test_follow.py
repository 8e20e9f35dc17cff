"""Certificates of the search, followed action by action: the same graph and the same time, exactly."""

from __future__ import annotations

from typing import Any

import pytest

import rooflang
from rooflang.agent import Session
from rooflang.agent.derivable import Verdict, derivable
from rooflang.errors import PlacementError, RefusedError, ValueRangeError
from rooflang.ir.blocks import split_blocks
from rooflang.ir.graph import Graph

from .graphs import decode, layers, mlp


def script_of(point: rooflang.Point) -> dict[str, Any]:
    return {name: value for name, value in point.certificate.items() if name != "evaluated"}


@pytest.mark.parametrize(("graph", "gpus"), [(mlp(), 8), (layers(4), 16), (decode(), 4)])
def test_plans_of_the_search_are_reached_by_actions(graph: Graph, gpus: int) -> None:
    found = rooflang.optimize(graph, hardware="b300", gpus=gpus, batch=[16, 64, 256])
    for point in found.frontier:
        session = Session.start(graph, hardware="b300", gpus=gpus, batch=point.batch)
        session.follow(point.certificate)
        assert session.certificate() == script_of(point)
        assert session.simulate() == point.sim
        again = Session.replay(session.journal, model=graph)
        assert again.certificate() == script_of(point)


def test_grid_plans_are_reached_by_actions() -> None:
    point = rooflang.simulate("deepseek-v4-pro", hardware="b300", gpus=16, context=65536, batch=64, dp=4, cp=2, pp=2)
    session = Session.start("deepseek-v4-pro", hardware="b300", gpus=16, context=65536, batch=64)
    session.follow(point.certificate)
    assert session.certificate() == script_of(point)
    assert session.simulate() == point.sim


def test_what_cannot_be_followed() -> None:
    point = rooflang.optimize(mlp(), hardware="b300", gpus=8, batch=[64]).frontier[0]
    other = Session.start(layers(), hardware="b300", gpus=8)
    with pytest.raises(PlacementError, match="another graph"):
        other.follow(point.certificate)
    session = Session.start(mlp(), hardware="b300", gpus=8)
    session.apply("dup_kernel up")
    with pytest.raises(ValueRangeError, match="1 actions"):
        session.follow(point.certificate)


def test_weights_that_rest_cut_are_gathered_by_an_action() -> None:
    session = Session.start(mlp(), hardware="b300", gpus=8, batch=64)
    for op in ("up", "act", "down"):
        session.apply(f"split_kernel {op} dim=batch axis=x")
    session.apply("merge_gather_broadcast down")
    whole = session.simulate(overlap="none")
    with pytest.raises(RefusedError, match="dim"):
        session.apply("merge_gather_broadcast w1 axis=x")
    session.apply("merge_gather_broadcast w1 dim=hidden axis=x")
    cut = session.simulate(overlap="none")
    assert cut.step_s > whole.step_s
    w1 = 8192 * 32768 * 2
    assert whole.peak_bytes - cut.peak_bytes == pytest.approx(w1 * 7 / 8 - w1, abs=1e6 + whole.peak_bytes * 0.01)
    followed = Session.start(mlp(), hardware="b300", gpus=8, batch=64)
    followed.follow(session.certificate())
    assert followed.certificate() == session.certificate()
    assert Session.replay(session.journal, model=mlp()).certificate() == session.certificate()
    plan, blocks = session.plan, split_blocks(mlp())
    assert derivable(plan, blocks).verdict is Verdict.YES
    # What its kernel no longer reads whole does not rest cut for it.
    session.apply("split_kernel up dim=ffn axis=x")
    assert "'w1'" in str(followed.certificate()) and "'w1'" not in str(session.certificate())
