"""What an extraction promises is what the simulation finds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost import CostModel
from rooflang.eqsat import saturate_all
from rooflang.extractors import extractor, extractor_names, greedy, stages
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.ilp import extract
from rooflang.extractors.memory import fullest
from rooflang.extractors.task import Extraction, Objective, Task
from rooflang.hw import Cluster, Mesh
from rooflang.ir import GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.models import Workload, load
from rooflang.place.certificate import certificate, replay
from rooflang.place.grid import balanced, partition
from rooflang.place.lower import lower
from rooflang.sim.result import Overlap
from rooflang.sim.simulate import simulate

from .graphs import Case, fan, residual, two_layers

SMALL = {"two layers": two_layers(layers=3), "residual": residual(layers=3), "fan": fan(batch=256, hidden=2048)}


def agrees(task: Task, found: Extraction, *, tokens: int = 1) -> None:
    """C, N and the objective are the simulation's, and what is asked of memory is no more than it finds."""
    cost = task.costed.cost
    sizes = {**cost.sizes, "batch": task.costed.batches[task.at]} if "batch" in cost.sizes else cost.sizes
    placed = lower(found.plan("test"), task.costed.blocks)
    overlap: Overlap = "perfect" if task.objective == "max" else "none"
    run = simulate(placed, replace(cost, sizes=sizes), tokens=tokens, overlap=overlap, check_memory=False)
    assert run.step_s == pytest.approx(found.value_s, rel=1e-9)
    slowest = max(run.stages, key=lambda stage: stage.span_s(overlap))
    assert slowest.local_s == pytest.approx(found.local_s, rel=1e-9)
    assert slowest.exposed_s == pytest.approx(found.exposed_s, rel=1e-9, abs=1e-15)
    assert found.bound_s <= run.step_s * (1 + 1e-12)
    need = fullest(task, found.decisions)
    # The simulation rounds every tensor to whole bytes.
    assert need.bytes <= run.peak_bytes + len(need.entries) + 1e-9 * run.peak_bytes


@pytest.mark.parametrize("name", extractor_names())
@pytest.mark.parametrize("objective", ["max", "sum"])
@pytest.mark.parametrize("mesh", [(), (4,), (2, 4)], ids=str)
@pytest.mark.parametrize("graph", SMALL)
def test_small_graphs(graph: str, mesh: tuple[int, ...], objective: Objective, name: str) -> None:
    domain = 4 if mesh == (2, 4) else None
    case = Case.of(SMALL[graph], mesh=mesh, domain=domain, saturate=True)
    task = case.task(objective=objective)
    agrees(task, extractor(name)(task))


@pytest.mark.parametrize("pp", [2, 3])
def test_pipelines(pp: int) -> None:
    case = Case.of(residual(batch=64, hidden=1024, layers=5), mesh=(2,), stages=pp, saturate=True)
    s = case.blocks.sequence
    task = case.task(stages=(s[:3], s[3:]) if pp == 2 else (s[:2], s[2:4], s[4:]))
    agrees(task, extract(task))
    agrees(task, stages.extract(task))


def v4(stage: str, assumptions: Assumptions, hardware: str, sizes: tuple[int, ...], batch: int, pp: int = 1) -> Task:
    """V4 Pro at 64K (8K in prefill)."""
    workload = Workload(stage=stage, context=65536 if stage == "decode" else 8192, batch=1)  # type: ignore[arg-type]
    graph = load("deepseek-v4-pro").build(workload, assumptions)
    blocks, gpus = split_blocks(graph), pp
    for size in sizes:
        gpus *= size
    cluster = Cluster.of(hardware, gpus)
    cost = CostModel.of(graph, cluster, Mesh.lay(cluster, sizes, stages=pp), assumptions, batch=batch)
    costed = CostedGraph.of(blocks, saturate_all(blocks, len(sizes)), cost)
    return Task(costed=costed, at=0, stages=partition(blocks, balanced(61, pp)))


@pytest.mark.parametrize("assumptions", [PAPER, PHYSICAL], ids=["paper", "physical"])
@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_v4_pro(stage: str, assumptions: Assumptions) -> None:
    task = v4(stage, assumptions, "b300", (2, 4), 64 if stage == "decode" else 8)
    tokens = 1 if stage == "decode" else 8192
    found = extract(task, gap=3e-3)
    assert found.gap <= 3e-3
    agrees(task, found, tokens=tokens)
    agrees(replace(task, objective="sum"), greedy.extract(replace(task, objective="sum")), tokens=tokens)


def test_v4_pro_without_overlap() -> None:
    task = replace(v4("decode", PHYSICAL, "gb300", (4, 16), 512), objective="sum")
    found = extract(task, gap=3e-3)
    assert found.gap <= 3e-3
    agrees(task, found)


def test_v4_pro_in_stages_with_identities_removed() -> None:
    task = v4("decode", PAPER, "gb300", (16,), 512, pp=4)
    found = stages.extract(task, gap=3e-3)
    agrees(task, found)
    assert {name for plan in found.block_plans.values() for name in plan.aliases} == {
        f"layers.{layer}.{name}" for layer in (0, 2) for name in ("expert_gather", "expert_scatter")
    }
    blocks, cluster = task.costed.blocks, task.costed.cost.cluster
    again = replay(certificate(found.plan("test"), blocks), blocks, cluster)
    assert {n: set(p.modes) for n, p in again.blocks.items()} == {n: set(p.modes) for n, p in found.block_plans.items()}


def test_a_block_that_finds_what_it_wants_at_hand_pays_nothing() -> None:
    """A layout of a port that the block before made on its way to the port's own is there for the next block too."""
    g = GraphBuilder("hand over", batch=64, hidden=64)
    g.block = "first"
    x = g.op("x", "activation", [g.input("rows", "batch hidden")], "batch hidden")
    g.block = "last"
    graph = g.build(g.op("y", "activation", [x], "batch hidden"))
    case = Case.of(graph, mesh=(4,))
    (group,) = {case.blocks.port_group[("first", "x")]}
    task = case.task(
        objective="sum",
        boundary={group: ("batch",)},
        keep=lambda kind, mode: mode.out == ("R",),
    )
    found = extract(task, gap=0.0)
    agrees(task, found)
    assert found.exposed_s == 0.0
