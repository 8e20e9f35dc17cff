"""Leaves in DRAM or on a drive: what their kernels cost, whose memory they take, and whom they meet on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.cost.model import CostModel
from rooflang.cost.tiers import lane_bytes_per_s
from rooflang.errors import CapacityError
from rooflang.hw import Cluster, Mesh
from rooflang.hw.schema import load_platform
from rooflang.ir import GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.place.grid import partition
from rooflang.place.layout import Layout
from rooflang.place.lower import lower
from rooflang.sim.build import build
from rooflang.sim.engine import run
from rooflang.sim.plan_trace import write_plan_trace
from rooflang.sim.remote import tier_lanes
from rooflang.sim.serial import Serial
from rooflang.sim.simulate import simulate
from rooflang.sim.verdict import verdict

from .plans import Placed, placed_model


def with_leaves_in(placed: Placed, tier: str, ending: str) -> Placed:
    """The same plan with all leaves whose name ends so in a tier."""
    graph, cost = placed
    plan, blocks = graph.plan, graph.blocks
    kinds = {
        kind.name: replace(
            plan.blocks[kind.name],
            tiers={leaf.name: tier for leaf in kind.leaves if leaf.name.endswith(ending)},
        )
        for kind in blocks.kinds
    }
    return lower(replace(plan, blocks=kinds), blocks), cost


@pytest.mark.parametrize(("hardware", "tier"), [("gb300", "dram"), ("b300", "dram"), ("b300", "nvme")])
def test_a_remote_leaf_is_read_at_the_rate_of_its_route(hardware: str, tier: str) -> None:
    near = placed_model(hardware=hardware)
    far = with_leaves_in(near, tier, "experts_w13")
    assert tier_lanes(far[0].plan) == ((tier, "read"), (tier, "write"))
    cluster = far[1].cluster
    one, other = (build(*placed) for placed in (near, far))
    moved = 0
    for op, (before, after) in enumerate(zip(one.costs, other.costs)):
        if f"{tier} read" in after.levels_s:
            size = (before.memory_s - after.memory_s) * cluster.device.hbm_bytes_per_s
            rate = lane_bytes_per_s(cluster, f"{tier} read", far[1].mesh.gpus)
            assert after.levels_s[f"{tier} read"] * rate == pytest.approx(size, rel=1e-9)
            assert after.alpha_s == cluster.tier(tier).latency_s
            took = run(other.program).end_s[op] - run(other.program).start_s[op] if not moved else 0
            assert not took or took == pytest.approx(size / rate + after.alpha_s, rel=1e-9)
            moved += 1
        else:
            assert before == after
    assert moved == 43


def test_the_papers_profile_has_no_latency_of_remote_leaves() -> None:
    near = placed_model(hardware="gb300", assumptions=PAPER)
    one, other = (build(*placed).costs for placed in (near, with_leaves_in(near, "dram", "experts_w13")))
    assert any(after.levels_s.get("dram read") for after in other)
    assert [cost.alpha_s for cost in one] == [cost.alpha_s for cost in other]


def test_it_takes_room_where_it_lies() -> None:
    near = placed_model(hardware="gb300")
    far = with_leaves_in(near, "dram", "experts_w13")
    one, other = (build(*placed).program for placed in (near, far))
    assert one.memory_names == ("HBM of stage 0",)
    assert other.memory_names == ("HBM of stage 0", "DRAM of stage 0")
    assert sum(one.memory_resident_bytes) == sum(other.memory_resident_bytes)
    assert other.memory_capacity_bytes[1] == far[1].cluster.tier("dram").capacity_bytes
    near_result, far_result = (simulate(*placed, tokens=1) for placed in (near, far))
    assert far_result.peak_bytes < near_result.peak_bytes - 0.9 * other.memory_resident_bytes[1]


def test_a_tier_that_is_too_small_overflows_by_name() -> None:
    far = with_leaves_in(placed_model(hardware="gb300", gpus=8, dp=8), "dram", "_cache")
    big = replace(far[1], sizes={**far[1].sizes, "batch": 16384})
    with pytest.raises(CapacityError, match="DRAM of stage 0 needs"):
        simulate(far[0], big, tokens=1)


def test_appending_to_a_remote_cache_writes_there() -> None:
    far = with_leaves_in(placed_model(hardware="gb300"), "dram", "_cache")
    built = build(*far)
    appends = [cost for op, cost in zip(built.ops, built.costs) if op.mode and op.mode.op.kind == "kv_append"]
    assert appends and all("dram write" in cost.levels_s for cost in appends)


def test_what_was_appended_to_is_read_from_where_it_lies() -> None:
    near = placed_model(hardware="gb300")
    far = with_leaves_in(near, "dram", "context_cache")
    for op, before, after in zip(far[0].ops, build(*near).costs, build(*far).costs):
        if op.mode is not None and op.mode.op.kind == "attention" and len(op.mode.op.operands) > 2:
            cache = next(t for t in op.mode.op.operands if t.name.endswith(".context"))
            assert cache.name in {t.name for t in op.mode.op.operands}
            assert after.memory_s < before.memory_s and after.levels_s["dram read"] > 0


def test_bounds_hold_for_remote_leaves_too() -> None:
    for ending in ("experts_w13", "_cache", "_w"):
        placed, cost = with_leaves_in(placed_model(), "dram", ending)
        for overlap in ("none", "perfect", "two-batch"):
            found = simulate(placed, cost, tokens=1, overlap=overlap)  # type: ignore[arg-type]
            bound = verdict(placed.plan, placed.blocks, cost, overlap=overlap)  # type: ignore[arg-type]
            assert bound.least_step_s <= found.step_s
            assert bound.least_bytes <= found.peak_bytes + 1


def one_gpu_a_stage(reading: set[str], tier: str) -> Placed:
    """Four stages of one GB300 each, two to a CPU's DRAM and to a drive; products of the blocks named have their
    weights in a tier."""
    platform = load_platform("gb300")
    assert platform.ssd is not None
    platform = msgspec.structs.replace(platform, ssd=msgspec.structs.replace(platform.ssd, gpus_per_drive=2))
    g = GraphBuilder("stages", batch=64, **{f"d{n}": 1024 * (n + 1) for n in range(5)})
    x = g.input("x", "batch d0")
    for n in range(4):
        g.block = f"layers.{n}"
        x = g.op(f"y{n}", "matmul", [x, g.weight(f"w{n}", f"d{n} d{n + 1}")], f"batch d{n + 1}")
    graph, cluster = g.build(x), Cluster.of(platform, 4)
    blocks, mesh = split_blocks(graph), Mesh.lay(cluster, (), stages=4)
    plan = replace(Layout(graph=graph, cluster=cluster, mesh=mesh).plan(), stages=partition(blocks, (1, 1, 1, 1)))
    kinds = {
        kind.name: replace(
            plan.blocks[kind.name], tiers={leaf.name: tier for leaf in kind.leaves if kind.name in reading}
        )
        for kind in blocks.kinds
    }
    return lower(replace(plan, blocks=kinds), blocks), CostModel.of(graph, cluster, mesh, PHYSICAL)


@pytest.mark.parametrize("tier", ["dram", "nvme"])
@pytest.mark.parametrize("reading", [{"layers.0"}, {"layers.1", "layers.2"}, {"layers.0", "layers.1"}], ids=sorted)
def test_stages_that_share_a_memory_are_no_faster_than_costs_say(reading: set[str], tier: str) -> None:
    """A stage may have a memory for itself while the other one does without. Whether they meet there is left to the
    engine."""
    placed, cost = one_gpu_a_stage(reading, tier)
    found = simulate(placed, cost, tokens=1, overlap="none")
    assert float(verdict(placed.plan, placed.blocks, cost, overlap="none").least_step_s) <= found.step_s
    assert Serial(placed.blocks, cost, "none").steps(placed.plan) is None


def test_reads_from_dram_and_arrivals_at_the_nic_share_the_pcie_link() -> None:
    """On B300 both come into the GPU over 128 GB/s: 64 of DRAM and 100 of InfiniBand do not fit."""
    placed, cost = with_leaves_in(placed_model(gpus=16, dp=16, batch=4096), "dram", "shared_w13")
    beside = [replace(op, stream=1) if op.name.endswith("shared_up") else op for op in placed.ops]
    built = build(replace(placed, ops=tuple(beside)), cost)
    program, timeline = built.program, run(built.program)
    links = [i for i, name in enumerate(program.resource_names) if name.startswith("pcie") and "→ gpu" in name]
    assert len(links) == 1
    rows = np.flatnonzero(program.component_resource == links[0])
    op = np.repeat(np.arange(program.op_count), np.diff(program.component_start))[rows]
    stretch = (timeline.component_end_s[rows] - timeline.start_s[op]) / program.component_s[rows]
    names = {built.ops[i].name.split(".")[-1] for i, slower in zip(op, stretch > 1.1) if slower}
    assert {"dispatch", "shared_up"} <= names <= {"dispatch", "combine", "shared_up"}
    assert stretch.max() <= 2.0 * (1 + 1e-9)


def test_the_trace_says_what_comes_from_where(tmp_path: Path) -> None:
    placed, cost = with_leaves_in(placed_model(hardware="gb300"), "dram", "experts_w13")
    write_plan_trace(tmp_path / "trace.json", placed, cost)
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    fetched = [e["args"] for e in events if any(key.startswith("to_hbm(") for key in e.get("args", {}))]
    assert len(fetched) == 43
    assert all(args["dram read_bytes"] > 0 for args in fetched)
    assert {value for args in fetched for key, value in args.items() if key.startswith("to_hbm(")} == {"from dram"}


def test_every_rank_by_itself_reads_the_same() -> None:
    far = with_leaves_in(placed_model(gpus=16, dp=4, cp=2, pp=2), "dram", "experts_w13")
    for overlap in ("none", "two-batch"):
        few, every = (
            simulate(*far, tokens=1, overlap=overlap, explicit=explicit)  # type: ignore[arg-type]
            for explicit in (False, True)
        )
        assert replace(few, events=0, operators=0) == replace(every, events=0, operators=0)
