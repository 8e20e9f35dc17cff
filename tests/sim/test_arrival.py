"""Stages that begin while values are still on their way to them: by hand, and against the engine on drawn pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.hw import Cluster, Mesh
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.ir.tensor import Tensor
from rooflang.place.grid import partition
from rooflang.place.layout import Layout
from rooflang.place.lower import lower
from rooflang.sim.arrival import Arrival
from rooflang.sim.result import Overlap
from rooflang.sim.serial import Serial
from rooflang.sim.simulate import simulate

from .plans import Placed, random_pipeline


def sent(seconds: float) -> Cost:
    return Cost(levels_s={"nvlink": seconds})


def begun(sends: list[float], ops: list[tuple[Cost, set[int]]]) -> Arrival:
    found = Arrival([sent(seconds) for seconds in sends], [(cost, frozenset(waits)) for cost, waits in ops], (1,))
    found.ask([0])
    return found


def test_a_stage_waits_for_the_second_value() -> None:
    found = begun([2.0, 3.0], [(Cost(compute_s=1.0), {0}), (Cost(), {1})])
    assert (found.idle_s[0], found.ops_s[0], found.sends_s[0]) == (2.0, 0.0, 0.0)


def test_a_collective_and_a_send_share_the_way_in() -> None:
    """From second 3 on both run at half their rate, until the send ends at 5; the collective goes on to 7."""
    found = begun([2.0, 2.0], [(Cost(memory_s=1.0), {0}), (sent(3.0), set()), (Cost(compute_s=1.0), {1})])
    assert (found.idle_s[0], found.ops_s[0], found.sends_s[0]) == (0.0, 1.0, 1.0)


def test_what_is_on_another_link_does_not_slow_a_send_down() -> None:
    ops = [(Cost(levels_s={"ib": 4.0}, alpha_s=0.5), {0}), (Cost(), {1})]
    found = begun([1.0, 3.0], ops)
    assert (found.idle_s[0], found.ops_s[0], found.sends_s[0]) == (0.0, 0.0, 0.0)


def test_operators_may_have_ended_before_a_value_comes() -> None:
    """The third value begins when the second has come, at 6. Two operators have ended by then, the second of them at
    that very moment: exits come before entries."""
    ops = [(Cost(compute_s=1.0), {0}), (Cost(compute_s=3.0), set()), (Cost(compute_s=1.0), {1}), (Cost(), {2})]
    found = begun([2.0, 4.0, 2.0], ops)
    assert found.late[:, 0].tolist() == [0, 0, 2]
    assert found.idle_s[0] == 1.0


def test_only_what_is_asked_for_and_possible_is_run() -> None:
    seconds = np.array([1.0, np.inf, 1.0])
    found = Arrival(
        [sent(1.0), Cost(levels_s={"nvlink": np.array([2.0, 2.0, 5.0])})],
        [(Cost(memory_s=seconds), frozenset({0})), (Cost(), frozenset({1}))],
        (3,),
    )
    found.ask([0, 1])
    assert found.idle_s.tolist() == [1.0, 0.0, 0.0]
    found.ask([2])
    assert found.idle_s.tolist() == [1.0, 0.0, 4.0]


def agree(placed: Placed, batches: list[int], ats: list[int], overlap: Overlap = "none") -> list[Arrival] | None:
    """Compare at some batch sizes; the beginnings of stages that were run by themselves, None without closed form."""
    graph, cost = placed
    each = {**cost.sizes, "batch": np.array(batches, np.float64)}
    serial = Serial(graph.blocks, replace(cost, sizes=each), overlap)
    found = serial.steps(graph.plan, ats)
    if found is None:
        return None
    for number, at in enumerate(ats):
        one = replace(cost, sizes={**cost.sizes, "batch": batches[at]})
        engine = simulate(graph, one, tokens=1, overlap=overlap, check_memory=False)
        assert found.step_s[number] == pytest.approx(engine.step_s, rel=1e-11, abs=0.0)
        assert found.peak_bytes[number] == engine.peak_bytes
        assert bool(found.fits[number]) is engine.fits
    return list(serial._arrivals.values())


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=["physical", "paper"])
@pytest.mark.parametrize("overlap", ["perfect", "none"])
def test_drawn_pipelines_agree_with_the_engine(overlap: Overlap, assumptions: Assumptions) -> None:
    rng, seen = Random(f"{overlap} {assumptions.name}"), np.zeros(4, int)
    for _ in range(40):
        placed = random_pipeline(rng, Cluster.of(rng.choice(["b300", "gb300"]), 16), assumptions)
        for arrival in (placed and agree(placed, [64, 128, 4096], [2, 0], overlap)) or ():
            seen += [np.max(x) > 1e-9 for x in (arrival.idle_s, arrival.ops_s, arrival.sends_s, arrival.late)]
    assert seen.min() > 5


def in_stages(graph: Graph, counts: Sequence[int], assumptions: Assumptions = PHYSICAL) -> Placed:
    """A stage of a GPU for so many of its layers each."""
    stages = len(counts)
    cluster, blocks = Cluster.of("b300", stages), split_blocks(graph)
    mesh = Mesh.lay(cluster, (), stages=stages)
    plan = replace(Layout(graph=graph, cluster=cluster, mesh=mesh).plan(), stages=partition(blocks, counts))
    return lower(plan, blocks), CostModel.of(graph, cluster, mesh, assumptions)


@pytest.mark.parametrize("reads", [True, False])
def test_a_stage_that_begins_with_nothing_that_is_sent_is_left_to_the_engine(reads: bool) -> None:
    """Its first operator may run long before the stage is sent anything, so that all of the step matters."""
    g = GraphBuilder("two", batch=64, hidden=512)
    g.block = "layers.0"
    x = g.op("a", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden")
    g.block = "layers.1"
    y = g.op("b", "rms_norm", [x if reads else g.input("y", "batch hidden")], "batch hidden", over="hidden")
    graph, cost = in_stages(g.build(g.op("c", "add", [x, y], "batch hidden")), (1, 1))
    assert (Serial(graph.blocks, cost, "none").steps(graph.plan) is not None) is reads


@pytest.mark.parametrize("last", [True, False])
def test_what_is_sent_last_has_to_be_read_and_not_only_handed_on(last: bool) -> None:
    """Else the stage may send before all has arrived."""
    g = GraphBuilder("three", batch=64, hidden=512)
    g.block = "layers.0"
    x = g.op("a", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden")
    y = g.op("b", "rms_norm", [x], "batch hidden", over="hidden")
    g.block = "layers.1"
    z = g.op("c", "rms_norm", [x], "batch hidden", over="hidden")
    if last:
        z = g.op("d", "add", [z, y], "batch hidden")
    g.block = "layers.2"
    graph, cost = in_stages(g.build(g.op("e", "add", [z, y], "batch hidden")), (1, 1, 1))
    sends = [op.name for op in graph.ops if op.kind == "send" and op.stage == 0]
    assert sends == ["a send", "b send"]
    assert (Serial(graph.blocks, cost, "none").steps(graph.plan) is not None) is last


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=["physical", "paper"])
@pytest.mark.parametrize(("large", "ended"), [(2**14, 1), (2560, 0)], ids=["gone by then", "still there"])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_peak_while_values_are_on_their_way(before: int, large: int, ended: int, assumptions: Assumptions) -> None:
    """A wide value is made, and used up before the third value that is sent begins to come, or while it does: it lies
    beside two of them, or all three. It may be made in the first block of its stage or in a later one."""
    g = GraphBuilder("wide", batch=1024, small=64, large=large, wide=2**14)
    g.block = "layers.0"
    x = g.op("a", "rms_norm", [g.input("x", "batch small")], "batch small", over="small")
    y = g.op("b", "matmul", [x, g.weight("wb", "small large")], "batch large")
    z = g.op("c", "rms_norm", [y], "batch large", over="large")
    for layer in range(before + 1):
        g.block = f"layers.{1 + layer}"
        x = g.op(f"d{layer}", "rms_norm", [x], "batch small", over="small")
    x = g.op("e", "matmul", [x, g.weight("we", "small wide")], "batch wide")
    x = g.op("f", "matmul", [x, g.weight("wf", "wide small")], "batch small")
    g.block = f"layers.{2 + before}"
    y = g.op("h", "matmul", [y, g.weight("wh", "large small")], "batch small")
    z = g.op("i", "matmul", [z, g.weight("wi", "large small")], "batch small")
    graph = g.build(g.op("j", "add", [g.op("k", "add", [x, y], "batch small"), z], "batch small"))
    arrivals = agree(in_stages(graph, (1, 2 + before), assumptions), [64, 1024], [0, 1])
    assert arrivals is not None
    assert arrivals[0].late[-1, 1] == before + 2 + ended


def test_what_each_operator_waits_for_matters() -> None:
    """Two stages whose operators and sends cost the same: one begins with two of three values, the other with one."""
    g = GraphBuilder("alike", batch=4096, hidden=512)

    def add(name: str, *terms: Tensor) -> Tensor:
        return g.op(name, "add", list(terms), "batch hidden")

    g.block = "layers.0"
    x = g.op("x0", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden")
    y = g.op("y0", "rms_norm", [x], "batch hidden", over="hidden")
    z = g.op("z0", "rms_norm", [y], "batch hidden", over="hidden")
    g.block = "layers.1"
    first = add("d1", add("c1", add("b1", add("a1", x, y), x), x), z)
    g.block = "layers.2"
    second = add("d2", add("c2", add("b2", add("a2", x, x), x), y), z)
    arrivals = agree(in_stages(g.build(first, second), (1, 1, 1)), [4096], [0])
    assert arrivals is not None
    assert len(arrivals) == 2
