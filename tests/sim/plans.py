"""Placed graphs to simulate: real models on the grid's layout, and small graphs cut by hand in every way there is."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.cost.model import CostModel
from rooflang.errors import PlacementError
from rooflang.hw import Cluster
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import OWNER
from rooflang.ir.op import signature
from rooflang.models import Workload, load
from rooflang.place.grid import grid_plan
from rooflang.place.layout import Layout
from rooflang.place.lower import PlacedGraph, lower

Placed = tuple[PlacedGraph, CostModel]


def placed_model(
    model: str = "deepseek-v4-flash",
    *,
    hardware: str = "b300",
    gpus: int = 8,
    batch: int = 64,
    dp: int = 8,
    cp: int = 1,
    pp: int = 1,
    stage: str = "decode",
    context: int = 65536,
    assumptions: Assumptions = PHYSICAL,
) -> Placed:
    """A model on the grid's layout, and its costs."""
    graph = load(model).build(Workload(stage=stage, context=context, batch=batch), assumptions)
    cluster = Cluster.of(hardware, gpus)
    plan = grid_plan(graph, cluster, dp=dp, cp=cp, pp=pp)
    return lower(plan, split_blocks(graph)), CostModel.of(graph, cluster, plan.mesh, assumptions)


def mlp(layers: int = 3) -> Graph:
    """Layers of norm, product, norm, product, residual: sums, statistics and plain cuts can all occur."""
    g = GraphBuilder("mlp", batch=64, hidden=512, ffn=2048)
    x = g.input("x", "batch hidden")
    for layer in range(layers):
        g.block = f"layers.{layer}"
        n = g.op(f"norm{layer}", "rms_norm", [x], "batch hidden", over="hidden")
        h = g.op(f"up{layer}", "matmul", [n, g.weight(f"u{layer}", "hidden ffn")], "batch ffn")
        m = g.op(f"mid{layer}", "rms_norm", [h], "batch ffn", over="ffn")
        y = g.op(f"down{layer}", "matmul", [m, g.weight(f"d{layer}", "ffn hidden")], "batch hidden")
        x = g.op(f"add{layer}", "add", [y, x], "batch hidden")
    return g.build(x)


def random_layout(rng: Random, cluster: Cluster) -> Placed | None:
    """An MLP with a random cut, copy or owner for every operator and axis; None where no collective joins the cuts."""
    graph = mlp(rng.choice([1, 2, 3]))
    halves = [(cluster.gpus,), (2, cluster.gpus // 2), (cluster.gpus // 2, 2)]
    layout = Layout.start(graph, cluster, rng.choice(halves))
    choices = {}
    for op in graph.ops[:5]:
        ways = [cut for cut in signature(op) if cut.out != "P" or op.kind == "matmul"]
        choices[op.name] = tuple(rng.choice([*ways, *ways, OWNER, "R"]) for _ in layout.mesh.axes)
    try:
        placed = lower(replace(layout, choices=choices).plan(), split_blocks(graph))
    except (PlacementError, ValueError):
        return None
    return placed, CostModel.of(graph, cluster, placed.plan.mesh, PHYSICAL)
