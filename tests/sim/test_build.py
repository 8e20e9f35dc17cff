"""From plans to programs: times against sums of costs, peaks against a walk through the operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost import Cost, CostModel
from rooflang.errors import CapacityError, PlacementError
from rooflang.hw import Cluster
from rooflang.ir.blocks import split_blocks
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.tensor import RESIDENT_ROLES
from rooflang.place.grid import grid_plan
from rooflang.place.lower import PlacedGraph, Value, lower
from rooflang.place.storage import storage, stored
from rooflang.search.screen import screen
from rooflang.sim.build import build
from rooflang.sim.engine import run
from rooflang.sim.memory import peak_bytes
from rooflang.sim.simulate import simulate

from ..place.graphs import decode, mlp, random_plan, small_v4

MESHES = [(8,), (2, 4), (4, 2), (4, 4), (2, 8)]
GRAPHS: dict[str, Callable[[Assumptions], Graph]] = {
    "mlp": lambda _: mlp(batch=1024, hidden=4096, ffn=8192),
    "decode": lambda _: decode().resized(batch=512, hidden=2048),
    "v4 decode": lambda profile: small_v4("decode", profile, batch=2048),
    "v4 prefill": lambda profile: small_v4("prefill", profile, batch=16),
}


def placed(
    name: str, profile: Assumptions, seeds: range, *, stages: int = 1
) -> Iterator[tuple[PlacedGraph, CostModel]]:
    """Random plans in which all ranks of a stage do the same, as far as their extents divide."""
    graph = GRAPHS[name](profile)
    for seed in seeds:
        rng = Random(seed)
        sizes = rng.choice(MESHES)
        gpus = stages * int(np.prod(sizes))
        cluster = Cluster.of("b300", gpus)
        drawn = random_plan(rng, graph, cluster, sizes, stages=stages, owners=0.0, divide=True)
        if drawn is None:
            continue
        plan, blocks = drawn
        cost = CostModel.of(graph, cluster, plan.mesh, profile)
        lowered = lower(plan, blocks)
        if all(np.isfinite(each.local_s) for _, each in costs_of(lowered, cost)):
            yield lowered, cost


def costs_of(graph: PlacedGraph, cost: CostModel) -> Iterator[tuple[int, Cost]]:
    """What every operator costs, straight from the formulas."""
    for op in graph.ops:
        if op.mode is not None:
            yield op.stage, cost.mode(op.mode)
        elif op.transfer is not None:
            yield op.stage, cost.transfer(op.tensor, op.transfer)
        else:
            yield op.stage, cost.send(op.tensor, op.write[1], op.stage)


# -- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [PHYSICAL, PAPER], ids=lambda p: p.name)
@pytest.mark.parametrize("name", GRAPHS)
def test_one_stage_takes_the_sum_of_c_and_n_or_the_larger_of_them(name: str, profile: Assumptions) -> None:
    checked = hidden = 0
    seeds = range(3 if name.startswith("v4") else 30)
    for graph, cost in placed(name, profile, seeds):
        local = exposed = 0.0
        for _, each in costs_of(graph, cost):
            local, exposed = local + float(each.local_s), exposed + float(each.exposed_s)
        none = simulate(graph, cost, tokens=1, overlap="none", check_memory=False)
        perfect = simulate(graph, cost, tokens=1, overlap="perfect", check_memory=False)
        assert none.step_s == pytest.approx(local + exposed, rel=1e-9)
        assert perfect.step_s == pytest.approx(max(local, exposed), rel=1e-9)
        assert none.stages[0].local_s == pytest.approx(local, rel=1e-9)
        assert none.stages[0].exposed_s == pytest.approx(exposed, rel=1e-9, abs=1e-18)
        batch = cost.sizes["batch"]
        assert perfect.tok_s_gpu == pytest.approx(batch / perfect.step_s / cost.cluster.gpus, rel=1e-12)
        assert perfect.tok_s_user == pytest.approx(1 / perfect.step_s, rel=1e-12)
        # What screening says is what simulation says.
        for overlap, found in (("none", none), ("perfect", perfect)):
            screened = screen(graph, cost, overlap)  # type: ignore[arg-type]
            assert float(screened.step_s) == pytest.approx(found.step_s, rel=1e-9)
        checked += 1
        hidden += perfect.step_s < none.step_s
    assert checked >= 0.6 * len(seeds)
    assert hidden >= 0.3 * len(seeds)


def test_tokens_multiply_throughput_and_interactivity() -> None:
    graph, cost = next(placed("mlp", PHYSICAL, range(20)))
    one, many = (simulate(graph, cost, tokens=n, check_memory=False) for n in (1, 100))
    assert many.tok_s_gpu == pytest.approx(100 * one.tok_s_gpu)
    assert many.tok_s_user == pytest.approx(100 * one.tok_s_user)


@pytest.mark.parametrize("profile", [PHYSICAL, PAPER], ids=lambda p: p.name)
def test_every_stage_of_a_pipeline_takes_its_own_sum(profile: Assumptions) -> None:
    checked = 0
    for name in ("mlp", "decode"):
        for graph, cost in placed(name, profile, range(12), stages=2):
            local, exposed = [0.0, 0.0], [0.0, 0.0]
            for stage, each in costs_of(graph, cost):
                local[stage] += float(each.local_s)
                exposed[stage] += float(each.exposed_s)
            result = simulate(graph, cost, tokens=1, overlap="none", check_memory=False)
            for stage in (0, 1):
                # Beside its own work a stage waits: for what the other one sends, and for links that both use.
                assert result.stages[stage].elapsed_s >= (local[stage] + exposed[stage]) * (1 - 1e-9)
                assert result.stages[stage].local_s == pytest.approx(local[stage], rel=1e-9)
            assert result.step_s == max(stage.elapsed_s for stage in result.stages)
            assert result.tok_s_user == pytest.approx(1 / (2 * result.step_s))
            checked += 1
    assert checked >= 12


def test_extents_that_do_not_divide_are_refused_by_name() -> None:
    graph = mlp()
    cluster = Cluster.of("b300", 8)
    plan = grid_plan(graph, cluster, dp=8, cp=1, pp=1)
    cost = CostModel.of(graph, cluster, plan.mesh, PHYSICAL, batch=12)
    with pytest.raises(PlacementError, match=r"first cannot run as batch → batch: its extents do not divide"):
        simulate(lower(plan, split_blocks(graph)), cost, tokens=1)


# -- memory -----------------------------------------------------------------------------------------------------------


def walked_peak(graph: PlacedGraph, cost: CostModel) -> int:
    """Bytes alive on a rank of a one-stage plan, operator by operator: residents always; an input until its last
    reader ends; anything else from its maker to its last reader; what the step leaves behind to the end."""
    lies = storage(graph, receive_buffers=cost.assumptions.receive_buffers)
    size = {value: round(float(cost.bytes(tensor, value[1]))) for value, tensor in stored(graph, lies).items()}
    resident = sum(round(float(cost.bytes(r.tensor, r.spec))) for r in graph.residents)
    last: dict[Value | None, int] = {}
    for at, op in enumerate(graph.ops):
        for value in (*op.reads, op.write):
            last[lies[value]] = at
    for value in graph.outputs:
        last[lies[value]] = len(graph.ops)
    alive = {value for value in size if value in graph.inputs}
    peak = sum(size[value] for value in alive)
    for at, op in enumerate(graph.ops):
        if op.write in size:
            alive.add(op.write)
        peak = max(peak, sum(size[value] for value in alive))
        alive = {value for value in alive if last[value] > at}
    return resident + peak


@pytest.mark.parametrize("profile", [PHYSICAL, PAPER], ids=lambda p: p.name)
@pytest.mark.parametrize("name", GRAPHS)
def test_peaks_are_those_of_a_walk_through_the_operators(name: str, profile: Assumptions) -> None:
    checked = 0
    for graph, cost in placed(name, profile, range(3 if name.startswith("v4") else 12)):
        result = simulate(graph, cost, tokens=1, check_memory=False)
        assert result.peak_bytes == walked_peak(graph, cost)
        least = float(screen(graph, cost, "none").least_bytes)
        rounding = len(graph.ops) + len(graph.residents)
        assert least <= result.peak_bytes + rounding
        assert least >= 0.2 * result.peak_bytes
        checked += 1
    assert checked >= 2


@pytest.mark.parametrize("profile", [PHYSICAL, PAPER], ids=lambda p: p.name)
def test_the_least_memory_of_a_pipeline_is_a_bound_too(profile: Assumptions) -> None:
    checked = 0
    for name, seeds in (("mlp", 12), ("decode", 12), ("v4 decode", 2)):
        for graph, cost in placed(name, profile, range(seeds), stages=2):
            result = simulate(graph, cost, tokens=1, check_memory=False)
            assert float(screen(graph, cost, "none").least_bytes) <= result.peak_bytes + len(graph.ops) + 100
            checked += 1
    assert checked >= 15


def peaks(graph: Graph, gpus: int, pp: int = 1, profile: Assumptions = PHYSICAL) -> list[int]:
    cluster = Cluster.of("b300", gpus)
    plan = grid_plan(graph, cluster, dp=gpus // pp, cp=1, pp=pp)
    cost = CostModel.of(graph, cluster, plan.mesh, profile)
    built = build(lower(plan, split_blocks(graph)), cost)
    return [int(peak) for peak in peak_bytes(built.program, run(built.program))]


def test_inputs_weights_and_outputs_take_room() -> None:
    g = GraphBuilder("two", batch=8, width=16)
    y = g.op("y", "matmul", [g.input("x", "batch width"), g.weight("w", "width out")], "batch out")
    g.dim("out", 32)
    z = g.op("z", "activation", [y], "batch out")
    x, w, out = 2 * 8 * 16, 2 * 16 * 32, 2 * 8 * 32
    # While y is made: x, y. While z is: y, z. The weight always.
    assert peaks(g.build(z), 1) == [w + max(x + out, out + out)]
    # An output that is read stays; an input that is read last stays until then.
    assert peaks(g.build(y, z), 1) == [w + 2 * out]
    u = g.op("u", "activation", [z], "batch out")
    assert peaks(g.build(u), 1) == [w + 2 * out]
    assert peaks(g.build(y, u), 1) == [w + 3 * out]


def test_what_nobody_reads_is_gone_when_it_is_made() -> None:
    g = GraphBuilder("dead", batch=8, width=16)
    x = g.input("x", "batch width")
    y = g.op("y", "activation", [x], "batch width")
    for number in range(5):
        g.op(f"dead{number}", "activation", [x], "batch width")
    size = 2 * 8 * 16
    assert peaks(g.build(g.op("z", "add", [x, y], "batch width")), 1) == [3 * size]


def test_a_cache_that_is_appended_to_counts_once_and_once_for_every_wave() -> None:
    graph = decode(2)

    def cache(layers: int) -> int:
        return layers * (8 * 64 * 32 + 8 * 8 * 32)

    one = peaks(graph, 2)
    cluster = Cluster.of("b300", 4)
    plan = grid_plan(graph, cluster, dp=2, cp=1, pp=2)
    staged = lower(plan, split_blocks(graph))
    cost = CostModel.of(graph, cluster, plan.mesh, PHYSICAL)
    resident = [
        sum(round(float(cost.bytes(r.tensor, r.spec))) for r in staged.residents if r.stage == stage)
        for stage in range(2)
    ]
    built = build(staged, cost)
    # Two waves are in flight, so that each stage holds the caches of its layer twice.
    assert built.program.memory_resident_bytes.tolist() == [stage + cache(1) for stage in resident]
    alone = grid_plan(graph, Cluster.of("b300", 2), dp=2, cp=1, pp=1)
    single = build(lower(alone, split_blocks(graph)), CostModel.of(graph, Cluster.of("b300", 2), alone.mesh, PHYSICAL))
    assert single.program.memory_resident_bytes.tolist() == [sum(resident)]
    assert one[0] > sum(resident)


def test_a_recurrent_state_counts_once_for_every_wave() -> None:
    g = GraphBuilder("states", batch=8, head=2, key=16, value=32)
    k, v = g.input("k", "batch head key"), g.input("v", "batch head value")
    for layer in range(2):
        g.block = f"layers.{layer}"
        operands = [k, v, g.weight(f"slopes{layer}", "head"), g.state(f"old{layer}", "batch head key value")]
        new = g.op(f"new{layer}", "linear_update", operands, "batch head key value")
        k = g.op(f"k{layer}", "activation", [k], "batch head key")
    graph = g.build(k, new)
    blocks, state = split_blocks(graph), 2 * 8 * 2 * 16 * 32
    for pp in (1, 2):
        cluster = Cluster.of("b300", pp)
        plan = grid_plan(graph, cluster, dp=1, cp=1, pp=pp)
        built = build(lower(plan, blocks), CostModel.of(graph, cluster, plan.mesh, PHYSICAL))
        # One stage has the states of two layers, two have that of one layer for each of two waves.
        assert built.program.memory_resident_bytes.tolist() == [2 * 2 * (2 // pp) + 2 * state] * pp


def test_receive_buffers_are_charged_or_free() -> None:
    """CP in prefill: every rank gathers the caches of all; the paper's profile gets them for nothing."""
    found = {}
    for profile in (PHYSICAL, PAPER):
        graph = small_v4("prefill", profile, batch=2, context=65536)
        cluster = Cluster.of("b300", 16)
        plan = grid_plan(graph, cluster, dp=2, cp=8, pp=1)
        lowered = lower(plan, split_blocks(graph))
        lies = storage(lowered, receive_buffers=profile.receive_buffers)
        values = stored(lowered, lies)
        found[profile.name] = [op for op in lowered.ops if op.kind == "transfer" and op.write in values]
        assert [op for op in lowered.ops if op.kind == "transfer" and op.transfer and not op.transfer.free]
    assert found["physical"]
    assert not [op for op in found["paper"] if op.transfer and not op.transfer.free]


def test_a_plan_that_does_not_fit_is_refused_with_its_largest_tensors() -> None:
    graph = mlp(batch=2**20, hidden=8192, ffn=2**16)
    cluster = Cluster.of("b300", 1)
    plan = grid_plan(graph, cluster, dp=1, cp=1, pp=1)
    cost = CostModel.of(graph, cluster, plan.mesh, PHYSICAL)
    lowered = lower(plan, split_blocks(graph))
    with pytest.raises(CapacityError) as caught:
        simulate(lowered, cost, tokens=1)
    text = str(caught.value)
    assert "up0 (137.4 GB)" in text and "288 GB" in text and plan.origin in text
    forced = simulate(lowered, cost, tokens=1, check_memory=False)
    assert not forced.fits
    assert forced.capacity_bytes == 288 * 10**9
    assert [name for name, _ in forced.largest[:2]] == ["copy1", "up1"]
    assert forced.peak_bytes == sum(size for _, size in forced.largest) or len(forced.largest) == 5
    assert not [r for r in lowered.residents if r.tensor.role not in RESIDENT_ROLES]
