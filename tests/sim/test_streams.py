"""Any number of streams, and control edges: what may run beside what, by class and by rank."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.errors import GraphError, UnknownNameError
from rooflang.sim.build import build
from rooflang.sim.engine import run
from rooflang.sim.fleet import DeviceOverride
from rooflang.sim.simulate import simulate

from .plans import Placed, placed_model


def spread(placed: Placed, streams: dict[str, int]) -> Placed:
    """The same step with the operators that end so on streams of their own."""
    graph, cost = placed
    ops = [replace(op, stream=next((n for end, n in streams.items() if op.name.endswith(end)), 0)) for op in graph.ops]
    return replace(graph, ops=tuple(ops)), cost


def times(placed: Placed, **options: object) -> dict[str, tuple[float, float]]:
    built = build(*placed, **options)  # type: ignore[arg-type]
    timeline = run(built.program)
    return {op.name: (timeline.start_s[i], timeline.end_s[i]) for i, op in enumerate(built.ops)}


def test_an_operator_on_a_stream_of_its_own_runs_beside_the_others() -> None:
    placed = placed_model(hardware="gb300", gpus=64, dp=64, batch=16384)
    serial, beside = times(placed), times(spread(placed, {"shared_up": 1, "shared_down": 1}))
    dispatch, shared = serial["layers.3.dispatch"], serial["layers.3.shared_up"]
    assert dispatch[1] <= shared[0] or shared[1] <= dispatch[0]
    dispatch, shared = beside["layers.3.dispatch"], beside["layers.3.shared_up"]
    assert dispatch[0] < shared[1] and shared[0] < dispatch[1]
    steps = [simulate(*p, tokens=1, overlap="none").step_s for p in (placed, spread(placed, {"shared_up": 1}))]
    assert steps[1] < steps[0]


def test_more_streams_never_lose_work() -> None:
    placed = placed_model()
    many = spread(placed, {"q_a": 1, "kv": 2, "shared_up": 3, "logits": 4, "attention": 5})
    one, other = (simulate(*p, tokens=1, overlap="none").stages[0] for p in (placed, many))
    assert one.local_s == pytest.approx(other.local_s, rel=1e-12)
    assert one.levels_s == pytest.approx(other.levels_s)
    assert len(set(build(*many).streams)) == 6


def test_a_control_edge_makes_the_second_wait_for_the_first() -> None:
    placed = spread(placed_model(hardware="gb300", gpus=64, dp=64, batch=16384), {"shared_up": 1, "shared_down": 1})
    edge = ("layers.3.combine", "layers.3.shared_up")
    free, held = times(placed), times(placed, control=[edge])
    assert free[edge[1]][0] < free[edge[0]][1]
    assert held[edge[1]][0] >= held[edge[0]][1]


def test_a_control_edge_against_the_program_order_turns_the_stream_around() -> None:
    placed = placed_model()
    free = times(placed)
    first, second = "layers.3.dispatch", "layers.3.shared_up"
    earlier, later = sorted((first, second), key=lambda name: free[name][0])
    held = times(placed, control=[(later, earlier)])
    assert held[later][1] <= held[earlier][0]


def test_control_edges_hold_on_every_rank_and_in_both_halves() -> None:
    placed, cost = placed_model(gpus=16, dp=4, cp=2, pp=2)
    control = [("layers.3.dispatch", "layers.3.shared_up"), ("layers.2.attention", "layers.40.q_a")]
    slow = [DeviceOverride(gpus=(3,), hbm=0.7)]
    for overlap in ("none", "two-batch"):
        few, every = (
            simulate(
                placed,
                cost,
                tokens=1,
                overlap=overlap,  # type: ignore[arg-type]
                overrides=slow,
                control=control,
                explicit=explicit,
            )
            for explicit in (False, True)
        )
        assert replace(few, events=0, operators=0) == replace(every, events=0, operators=0)


def test_a_cycle_is_named() -> None:
    placed, cost = placed_model()
    with pytest.raises(GraphError, match=r"wait for each other: .*layers\.3\.q_a"):
        build(placed, cost, control=[("layers.3.combine", "layers.3.q_a")])


def test_an_operator_that_does_not_exist_is_named() -> None:
    placed, cost = placed_model()
    with pytest.raises(UnknownNameError, match=r"layers\.3\.q_x"):
        build(placed, cost, control=[("layers.3.q_x", "layers.3.q_a")])
