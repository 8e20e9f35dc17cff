"""Every rank its own operators, or one a class: the same bit for bit, on plans as people and searches make them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.cost.model import CostModel
from rooflang.errors import CapacityError, PlacementError
from rooflang.hw import Cluster
from rooflang.ir import GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import OWNER, REPLICATED
from rooflang.ir.layout import make_transfer
from rooflang.ir.tensor import Role
from rooflang.place.grid import grid_plan
from rooflang.place.layout import Layout
from rooflang.place.lower import lower
from rooflang.sim.build import Built, build
from rooflang.sim.engine import run
from rooflang.sim.fleet import DeviceOverride, LinkOverride, Override
from rooflang.sim.memory import peak_bytes
from rooflang.sim.quotient import quotient
from rooflang.sim.result import Overlap, SimResult
from rooflang.sim.simulate import simulate

from .plans import Placed, placed_model, random_layout

SLOW = DeviceOverride(gpus=(3,), hbm=0.8)
NARROW = LinkOverride(gpus=(5,), level="nvlink", factor=0.5)
FAILED = LinkOverride(gpus=(1,), level="nvlink", factor=0.0)


def both(placed: Placed, overrides: tuple[Override, ...], overlap: Overlap) -> tuple[SimResult, SimResult]:
    graph, cost = placed
    few, all_ranks = (
        simulate(graph, cost, tokens=1, overlap=overlap, overrides=overrides, explicit=explicit, check_memory=False)
        for explicit in (False, True)
    )
    return few, all_ranks


def check_same(few: SimResult, all_ranks: SimResult) -> None:
    assert replace(few, events=0, operators=0) == replace(all_ranks, events=0, operators=0)


CASES = [
    ((8, 8, 1, 1), (), "two-batch"),
    ((8, 8, 1, 1), (SLOW,), "none"),
    ((8, 4, 2, 1), (NARROW,), "two-batch"),
    ((8, 4, 2, 1), (FAILED,), "none"),
    ((16, 2, 4, 2), (), "none"),
    ((16, 2, 4, 2), (SLOW, FAILED), "two-batch"),
]


@pytest.mark.parametrize(
    ("shape", "overrides", "overlap"), CASES, ids=["halves", "slow", "narrow", "failed", "pipeline", "odd"]
)
def test_models_by_class_and_by_rank(
    shape: tuple[int, int, int, int], overrides: tuple[Override, ...], overlap: Overlap
) -> None:
    gpus, dp, cp, pp = shape
    few, all_ranks = both(placed_model(gpus=gpus, dp=dp, cp=cp, pp=pp), overrides, overlap)
    check_same(few, all_ranks)
    assert few.operators < all_ranks.operators


@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_the_paper_profile_and_prefill_by_class_and_by_rank(stage: str) -> None:
    placed = placed_model(gpus=8, dp=4, cp=2, stage=stage, context=8192, batch=16, assumptions=PAPER)
    check_same(*both(placed, (SLOW,), "perfect"))


def test_large_groups_wait_for_a_join_and_change_nothing() -> None:
    few, all_ranks = both(placed_model(hardware="gb300", gpus=64, dp=64), (SLOW,), "none")
    check_same(few, all_ranks)


def test_random_layouts_by_class_and_by_rank() -> None:
    """Norms that exchange sums, partial products, owners, copies; one or two axes; one odd GPU or link in half."""
    found = slower = 0
    for seed in range(250):
        rng = Random(seed)
        cluster = Cluster.of("b300", rng.choice([4, 8, 16]))
        placed = random_layout(rng, cluster)
        if placed is None:
            continue
        odd = rng.randrange(cluster.gpus)
        overrides: tuple[Override, ...] = rng.choice(
            [(), (), (DeviceOverride(gpus=(odd,), compute=0.5, hbm=0.7),), (replace(NARROW, gpus=(odd,)),)]
        )
        overlap: Overlap = rng.choice(["none", "two-batch"])
        try:
            few, all_ranks = both(placed, overrides, overlap)
        except PlacementError:
            continue
        check_same(few, all_ranks)
        found += 1
        slower += few.step_s > both(placed, (), overlap)[0].step_s
    assert found > 100 and slower > 15


def check_quotient(built: Built) -> None:
    whole = run(built.program)
    small = quotient(built.program)
    assert small is not None
    merged = run(small.program)
    assert np.array_equal(small.expand(merged).end_s, whole.end_s)
    peaks = small.expand_peaks(peak_bytes(small.program, merged))
    assert np.array_equal(peaks, peak_bytes(built.program, whole))


def test_the_certified_quotient_of_all_ranks_finds_the_classes_again() -> None:
    graph, cost = placed_model(gpus=8, dp=4, cp=2)
    for overrides in ((), (SLOW,)):
        check_quotient(build(graph, cost, overrides=overrides, explicit=True))
    whole = build(graph, cost, explicit=True).program
    small = quotient(whole)
    assert small is not None
    assert small.program.op_count <= build(graph, cost).program.op_count


def test_owners_alone_run_what_is_theirs() -> None:
    rng = Random(1)
    for _ in range(200):
        placed = random_layout(rng, Cluster.of("b300", 4))
        if placed is None or not any("O" in op.write[1] for op in placed[0].ops):
            continue
        built = build(*placed)
        owners = [c for c in range(len(built.ranks.stage)) if all(built.ranks.owns[c].values())]
        assert len(built.ranks.stage) > 1
        counts = [len(work) for work in built.work]
        assert max(counts) == max(counts[c] for c in owners)
        assert min(counts) < max(counts)
        return
    pytest.fail("no layout with an owner")


# -- what overrides do ------------------------------------------------------------------------------------------------


def test_one_slow_gpu_slows_the_whole_stage_as_much_as_if_all_were_slow_at_most() -> None:
    graph, cost = placed_model()
    none = simulate(graph, cost, tokens=1, overlap="none")
    one = simulate(graph, cost, tokens=1, overlap="none", overrides=[SLOW])
    every = simulate(graph, cost, tokens=1, overlap="none", overrides=[replace(SLOW, gpus=tuple(range(8)))])
    assert none.step_s < one.step_s <= every.step_s
    assert none.step_s * 1.2 < every.step_s < none.step_s / 0.8


def test_a_slow_gpu_in_a_pipeline_slows_its_own_stage_only() -> None:
    graph, cost = placed_model(gpus=16, dp=4, cp=2, pp=2)
    healthy = simulate(graph, cost, tokens=1, overlap="none")
    slow = simulate(graph, cost, tokens=1, overlap="none", overrides=[DeviceOverride(gpus=(9,), hbm=0.8)])
    assert slow.stages[0].elapsed_s == healthy.stages[0].elapsed_s
    assert slow.stages[1].elapsed_s > healthy.stages[1].elapsed_s * 1.1


def test_mixed_devices_take_what_they_are() -> None:
    graph, cost = placed_model()
    h200 = Cluster.of("h200", 8).device
    device = replace(cost.cluster.device, hbm_bytes_per_s=h200.hbm_bytes_per_s, hbm_bytes=h200.hbm_bytes)
    mixed = simulate(graph, cost, tokens=1, overlap="none", overrides=[DeviceOverride(gpus=(0, 1), device=device)])
    assert mixed.step_s > simulate(graph, cost, tokens=1, overlap="none").step_s * 1.2
    assert mixed.capacity_bytes == h200.hbm_bytes


def test_a_device_with_less_memory_is_the_one_that_overflows() -> None:
    graph, cost = placed_model()
    small = replace(cost.cluster.device, hbm_bytes=10e9)
    with pytest.raises(CapacityError, match="gpu 6"):
        simulate(graph, cost, tokens=1, overrides=[DeviceOverride(gpus=(6,), device=small)])


def test_a_failed_link_is_worse_than_a_narrow_one() -> None:
    graph, cost = placed_model(gpus=16, dp=16)
    times = [
        simulate(graph, cost, tokens=1, overlap="none", overrides=overrides).step_s
        for overrides in (
            [],
            [LinkOverride(gpus=(5,), level="ib", factor=0.5)],
            [LinkOverride(gpus=(5,), level="ib", factor=0)],
        )
    ]
    assert times == sorted(times) and len(set(times)) >= 2


# -- who waits for whom -----------------------------------------------------------------------------------------------


def by_rank(built: Built, name: str) -> list[int]:
    """The operators of that name in a program with every rank's own, in the order of ranks."""
    return [op for work in built.work for op, _ in work if built.ops[op].name == name]


def test_experts_wait_for_all_dispatches_and_combines_for_all_experts() -> None:
    graph, cost = placed_model()
    built = build(graph, cost, overrides=[SLOW], explicit=True)
    timeline = run(built.program)
    for first, second in (("dispatch", "expert_up"), ("expert_down", "combine")):
        before, after = (by_rank(built, f"layers.3.{name}") for name in (first, second))
        assert len(before) == len(after) == 8
        ends = timeline.end_s[before]
        assert ends.argmax() == 3 and np.ptp(ends) > 0
        assert (timeline.start_s[after] >= ends.max()).all()


def test_rows_stay_until_the_whole_group_has_read_them() -> None:
    graph, cost = placed_model()
    program = build(graph, cost, explicit=True).program
    rows = [i for i, label in enumerate(program.tensor_labels) if label == "layers.3.expert_down"]
    assert sorted(program.tensor_memory[rows].tolist()) == list(range(8))
    for tensor in rows:
        readers = program.consumer[program.consumer_start[tensor] : program.consumer_start[tensor + 1]]
        assert len(set(readers.tolist())) == 8
        assert {program.label(int(op)) for op in readers} == {"layers.3.combine"}


def test_a_detour_is_paid_in_latency_by_all_of_its_group() -> None:
    graph, cost = placed_model(gpus=16, dp=8, cp=2)
    failed = LinkOverride(gpus=(5,), level="ib", factor=0.0)
    plain, detoured = (build(graph, cost, overrides=overrides, explicit=True) for overrides in ([], [failed]))
    rises: dict[str, set[float]] = {"alone": set(), "group": set()}
    for op, (before, after) in enumerate(zip(plain.program.op_alpha_s, detoured.program.op_alpha_s)):
        if "ib" in plain.costs[op].levels_s:
            kind = "group" if plain.ops[op].kind == "transfer" else "alone"
            rises[kind].add(round((after - before) * 1e6, 6))
    assert rises["alone"] == {0.0, 1.0}
    assert 1.0 in rises["group"] or not rises["group"]


def test_a_step_ends_with_the_last_of_its_ranks() -> None:
    """Not with the one that works most: here the slow link's owner waits while others compute."""
    graph, cost = placed_model(gpus=8, dp=4, cp=2)
    for overrides in ([SLOW], [NARROW], [FAILED], [replace(SLOW, compute=0.05, hbm=1.5)]):
        built = build(graph, cost, overrides=overrides)
        assert (
            simulate(graph, cost, tokens=1, overlap="none", overrides=overrides).step_s == run(built.program).makespan_s
        )


def test_one_rank_gathers_what_all_have_made() -> None:
    """Shards come together at the first rank, and from there go to all: no sooner than the slowest has made its own."""
    g = GraphBuilder("gathered", batch=1024, hidden=4096)
    y = g.op("y", "activation", [g.input("x", "batch hidden")], "batch hidden")
    graph, cluster = g.build(g.op("z", "activation", [y], "batch hidden")), Cluster.of("b300", 2)
    layout = Layout.start(graph, cluster, [2]).split_kernel("y", "batch")
    plan, blocks = layout.plan(), split_blocks(graph)
    (kind,) = blocks.kinds
    steps = (make_transfer("y", ("batch",), (OWNER,)), make_transfer("y", (OWNER,), (REPLICATED,)))
    plan = replace(plan, blocks={kind.name: replace(plan.blocks[kind.name], paths={("z", 0): steps})})
    cost = CostModel.of(graph, cluster, layout.mesh, PHYSICAL)
    placed, slow = (lower(plan, blocks), cost), (DeviceOverride(gpus=(1,), hbm=0.125),)
    few, all_ranks = both(placed, slow, "none")
    check_same(few, all_ranks)
    modes = plan.blocks[kind.name].modes
    work_s = sum(8 * float(cost.mode(modes[name]).local_s) for name in ("y", "z"))
    moves_s = sum(float(cost.transfer(graph.tensors["y"], step).exposed_s) for step in steps)
    assert few.step_s == pytest.approx(work_s + moves_s, rel=1e-9)


def test_a_stage_takes_from_its_first_start_to_its_last_end() -> None:
    """A slow rank of the first stage hands on late: its partner on the second one begins later than the others do."""
    g = GraphBuilder("late", batch=1024, hidden=4096)
    x = g.input("x", "batch hidden")
    for layer in range(2):
        g.block = f"layers.{layer}"
        x = g.op(f"y{layer}", "activation", [x], "batch hidden", role=Role.OUTPUT if layer else Role.ACTIVATION)
    graph, cluster = g.build(x), Cluster.of("b300", 4)
    plan = grid_plan(graph, cluster, dp=2, cp=1, pp=2)
    cost = CostModel.of(graph, cluster, plan.mesh, PHYSICAL)
    placed = lower(plan, split_blocks(graph)), cost
    few, all_ranks = both(placed, (DeviceOverride(gpus=(1,), hbm=0.125),), "none")
    check_same(few, all_ranks)
    own_s = float(cost.mode(next(iter(plan.blocks.values())).modes["y0"]).local_s)
    assert few.stages[1].elapsed_s == pytest.approx(8 * own_s, rel=1e-9)
