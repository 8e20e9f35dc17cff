"""The e-graph search: never worse than the grid, never above its bound's promise, the same twice, and what it needs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rooflang.errors import CapacityError, LimitReached, RooflangError
from rooflang.extractors.stages import extract
from rooflang.extractors.task import Extraction, Task
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph, GraphBuilder
from rooflang.ir.text import dump
from rooflang.place.certificate import replay
from rooflang.search.api import optimize
from rooflang.search.effort import GAP
from rooflang.search.evaluate import evaluate
from rooflang.search.point import Point, Result
from rooflang.search.problem import Problem
from rooflang.search.validate import validate

PRO = "deepseek-v4-pro"


def run(**changes: object) -> Result:
    given: dict[str, object] = {"hardware": "b300", "gpus": 8, "stage": "decode", "context": 65536, "batch": [8, 512]}
    return optimize(PRO, **{**given, **changes})  # type: ignore[arg-type]


def best(points: tuple[Point, ...], batch: int) -> tuple[float, float]:
    mine = [p.sim for p in points if p.batch == batch]
    return max(s.tok_s_gpu for s in mine), max(s.tok_s_user for s in mine)


@pytest.mark.parametrize("assumptions", ["paper", pytest.param("physical", marks=pytest.mark.slow)])
@pytest.mark.parametrize("overlap", ["perfect", "none"])
def test_never_worse_than_the_grid(assumptions: str, overlap: str) -> None:
    given = {"assumptions": assumptions, "overlap": overlap, "pp": 1}
    egraph, grid = run(**given), run(search="grid", **given)
    for batch in (8, 512):
        for ours, theirs in zip(best(egraph.points, batch), best(grid.points, batch)):
            assert ours >= theirs * (1 - 1e-9)
    for point in egraph.points:
        assert point.bound_s is not None
        assert point.bound_s <= point.sim.step_s * (1 + 1e-9)
        assert point.gap is not None and point.gap <= 2 * GAP


def test_it_gains_much_where_the_grid_replicates_weights() -> None:
    """At batch 8 the grid has every rank read all dense weights: cutting them is worth more than a factor of two."""
    given = {"batch": [8], "pp": 1, "assumptions": "paper"}
    egraph, grid = run(**given), run(**given, search="grid")
    assert egraph.points[0].sim.tok_s_user > 2 * grid.points[0].sim.tok_s_user


@pytest.mark.parametrize("assumptions", ["paper", pytest.param("physical", marks=pytest.mark.slow)])
def test_prefill(assumptions: str) -> None:
    given = {"stage": "prefill", "batch": [8], "pp": 1, "assumptions": assumptions}
    egraph, grid = run(**given), run(**given, search="grid")
    assert best(egraph.points, 8)[0] >= best(grid.points, 8)[0]


def test_certificates_replay_to_the_same_time() -> None:
    problem = Problem.of(PRO, hardware="b300", gpus=8, context=65536, assumptions="paper")
    point = run(batch=[64], pp=2, assumptions="paper").points[0]
    laid = problem.for_script(point.certificate)
    plan = replay(json.loads(json.dumps(point.certificate)), laid.blocks, laid.cluster)
    validate(plan, laid.blocks, laid.cluster)
    again = evaluate(laid, plan, 64, overlap="perfect")
    assert again.sim == point.sim


def test_the_same_twice() -> None:
    first, second = run(batch=[64], pp=1, assumptions="paper"), run(batch=[64], pp=1, assumptions="paper")
    assert [p.to_json() for p in first.points] == [p.to_json() for p in second.points]
    assert first.inputs["hash"] == second.inputs["hash"]


def test_the_schema_is_json() -> None:
    data = json.loads(json.dumps(run(batch=[8], pp=4).to_json()))
    assert data["schema"] == "rooflang.result/1"
    wanted = {"batch", "tok_s_gpu", "tok_s_user", "step_s", "bound_s", "gap", "peak_bytes", "capacity_bytes",
              "bottleneck", "pp", "pp_partition", "plan", "certificate"}  # fmt: skip
    assert all(wanted <= set(point) for point in data["frontier"])


# -- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "assumptions"),
    [
        ("fuse_kernels", "paper"),
        ("merge_gather_broadcast", "paper"),
        ("merge_reduce_scatter", "paper"),
        ("merge_gather_scatter", "paper"),
        ("remove_identity", "paper"),
    ],
)
def test_the_best_plan_needs_the_rule(rule: str, assumptions: str) -> None:
    """On 4 GB300 at batch 512, where nothing overlaps: without the rule the best plan is slower."""
    given = {"batch": [512], "pp": 1, "assumptions": assumptions, "gpus": 4, "hardware": "gb300", "overlap": "none"}
    with_rule = run(**given).points[0].sim.step_s
    without = run(**given, disable_rules=[rule]).points[0].sim.step_s
    assert without > with_rule * (1 + 1e-4)


def test_nothing_runs_without_splitting() -> None:
    with pytest.raises(RooflangError):
        run(batch=[8], pp=1, disable_rules=["split_kernel"])


# -- graphs that are no transformers ----------------------------------------------------------------------------------


def stencil() -> Graph:
    """A chain of products, sums and norms over points of a grid, without layers, heads or a batch."""
    g = GraphBuilder("stencil", points=4096, field=2048, mode=8192)
    u = g.input("u", "points field", "fp32")
    spectrum = g.op("transform", "matmul", [u, g.weight("basis", "field mode", "fp32")], "points mode", "fp32")
    damped = g.op("damp", "activation", [spectrum], "points mode", "fp32", function="tanh")
    back = g.op("inverse", "matmul", [damped, g.weight("inverse_basis", "mode field", "fp32")], "points field", "fp32")
    new = g.op("step", "add", [u, back], "points field", "fp32")
    return g.build(g.op("scaled", "rms_norm", [new], "points field", "fp32", over="field"))


def test_any_graph(tmp_path: object) -> None:
    graph = stencil()
    result = optimize(graph, hardware=Cluster.of("h200", 8))
    point = result.frontier[0]
    assert "points→8" in point.plan or "mode→8" in point.plan
    from pathlib import Path

    path = Path(str(tmp_path)) / "stencil.rl"
    path.write_text(dump(graph), encoding="utf-8")
    again = optimize(path, hardware="h200", gpus=8)
    assert again.frontier[0].sim.step_s == point.sim.step_s


def test_one_gpu() -> None:
    assert optimize(stencil(), hardware="h200", gpus=1).frontier[0].mesh == ()


def test_nothing_fits() -> None:
    with pytest.raises(CapacityError, match=r"no plan found for .* fits at a batch size"):
        run(gpus=1, batch=[1], disable_rules=["insert_identity"])


def test_leaves_leave_hbm_where_nothing_fits_with_all_of_them_there() -> None:
    """The weights of V4 Pro are three times the HBM of two superchips. With insert_identity the experts lie in the
    memory of the Graces, and are read from there."""
    task = {"hardware": "gh200", "gpus": 2, "batch": [1], "pp": 1}
    with pytest.raises(CapacityError):
        run(**task, disable_rules=["insert_identity"])
    (point,) = run(**task).frontier
    assert "leaves in DRAM" in point.plan and "leaves in HBM or DRAM" in point.bound_scope
    assert point.gap is not None and point.gap < 0.01
    assert point.sim.bottleneck == "dram read"
    moved = [step for kind in point.certificate["kinds"] for step in kind["tiers"]]
    assert {step["primitive"] for step in moved} == {"insert_identity"}
    assert {step["dim"] for step in moved} == {"dram"}
    assert {step["target"].split(".")[-1] for step in moved} >= {"experts_w13"}
    assert run(batch=[8]).frontier[0].bound_scope.endswith("leaves in HBM")


def test_what_does_not_divide_may_not_fit_where_more_does() -> None:
    """7 requests lie whole on each of 8 GPUs, 8 of them lie one on each."""
    prime = 12_000_000_017
    g = GraphBuilder("long rows", batch=8, n=prime)
    graph = g.build(g.op("y", "activation", [g.input("x", "batch n")], "batch n"))
    result = optimize(graph, hardware="b300", gpus=8, batch=[6, 7, 8])
    assert [(p.batch, p.sim.peak_bytes) for p in result.points] == [(6, 4.0 * 3 * prime), (8, 4.0 * prime)]


def test_an_extraction_without_a_plan_leaves_the_bound_low(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mesh whose extraction came to nothing may have had the best plan."""
    given = {"batch": [8], "pp": 1, "assumptions": "paper"}
    first = run(**given).points[0]

    def fails_on_the_best_mesh(task: Task, **limits: Any) -> Extraction:
        if tuple(axis.size for axis in task.costed.cost.mesh.axes) == first.mesh:
            raise LimitReached("the time was up before a plan was found")
        found = extract(task, **limits)
        return replace(found, bound_s=found.value_s)

    monkeypatch.setattr("rooflang.search.part.extract", fails_on_the_best_mesh)
    second = run(**given).points[0]
    assert second.mesh != first.mesh
    assert second.bound_s is not None and second.bound_s <= first.sim.step_s


def test_a_time_limit_ends_the_pricing_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rooflang.search.part.saturate_all", None)  # which would fail if it were called
    with pytest.raises(LimitReached, match="before its first point"):
        run(time_limit_s=1e-9)
