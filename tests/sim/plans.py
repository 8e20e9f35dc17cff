"""Placed graphs to simulate: real models on the grid's layout, and small graphs cut by hand in every way there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.cost.model import CostModel
from rooflang.errors import PlacementError
from rooflang.hw import Cluster, Mesh
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import OWNER
from rooflang.ir.op import signature
from rooflang.models import Workload, load
from rooflang.place.grid import grid_plan, layer_labels, partition
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


def braid(rng: Random, layers: int) -> Graph:
    """Layers of two kinds that hand several values on, of random width, each read, changed or passed over at random."""
    widths = {f"d{n}": 64 * rng.choice([1, 2, 8, 64]) for n in range(rng.choice([2, 3]))}
    g = GraphBuilder("braid", batch=64, **widths)
    g.block = "start"
    inputs = {dim: g.input(f"x_{dim}", f"batch {dim}") for dim in widths}
    carried = {dim: g.op(f"start_{dim}", "rms_norm", [x], f"batch {dim}", over=dim) for dim, x in inputs.items()}
    kinds = [
        [(rng.choice(["rms_norm", "matmul", "add"]), rng.choice([*widths]), rng.choice([*widths])) for _ in range(6)]
        for _ in range(2)
    ]
    for layer in range(layers):
        g.block = f"layers.{layer}"
        now = dict(carried)
        for number, (kind, source, dim) in enumerate(kinds[layer % 2]):
            name = f"{kind}{layer}_{number}"
            if kind == "add":
                now[dim] = g.op(name, kind, [now[dim], carried[dim]], f"batch {dim}")
            elif kind == "rms_norm" or source == dim:
                now[source] = g.op(name, "rms_norm", [now[source]], f"batch {source}", over=source)
            else:
                weight = g.weight(f"weight{layer}_{number}", f"{source} {dim}")
                now[dim] = g.op(name, kind, [now[source], weight], f"batch {dim}")
        carried = now
    return g.build(*carried.values())


def random_pipeline(rng: Random, cluster: Cluster, assumptions: Assumptions = PHYSICAL) -> Placed | None:
    """A braid in two or four stages, laid at random; None where no collective joins the cuts."""
    stages = rng.choice([2, 4])
    graph = braid(rng, rng.randint(stages, 6))
    gpus = cluster.gpus // stages
    mesh = Mesh.lay(cluster, rng.choice([(gpus,), (2, gpus // 2)]), stages=stages)
    layout = Layout(graph=graph, cluster=cluster, mesh=mesh)
    choices = {}
    for op in graph.ops[:15]:
        ways = [cut for cut in signature(op) if cut.out != "P" or op.kind == "matmul"]
        choices[op.name] = tuple(rng.choice([*ways, *ways, "R"]) for _ in layout.mesh.axes)
    blocks = split_blocks(graph)
    cuts = sorted(rng.sample(range(1, len(layer_labels(blocks))), stages - 1))
    counts = [end - begin for begin, end in pairwise([0, *cuts, len(layer_labels(blocks))])]
    try:
        plan = replace(replace(layout, choices=choices).plan(), stages=partition(blocks, counts))
        placed = lower(plan, blocks)
    except (PlacementError, ValueError):
        return None
    return placed, CostModel.of(graph, cluster, mesh, assumptions)
