"""Saturation and extraction lose nothing: no assignment of layouts is cheaper, and none is below the bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from rooflang.assumptions import PHYSICAL
from rooflang.cost import CostModel
from rooflang.eqsat import saturate_all
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.ilp import extract
from rooflang.extractors.task import Extraction, Task
from rooflang.hw import Cluster, Mesh
from rooflang.ir import Graph, GraphBuilder
from rooflang.ir.blocks import split_blocks
from rooflang.ir.joint import Joint

from .brute import Brute


def megatron(batch: int = 64) -> Graph:
    """Two products with a nonlinearity between them."""
    g = GraphBuilder("megatron", batch=batch, hidden=1024, ffn=4096)
    h = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden ffn")], "batch ffn")
    a = g.op("act", "activation", [h], "batch ffn")
    return g.build(g.op("down", "matmul", [a, g.weight("w2", "ffn hidden")], "batch hidden"))


def residual() -> Graph:
    """Norm, product, product, residual add: fusions, and a value with two readers."""
    g = GraphBuilder("residual", batch=16, hidden=2048, ffn=4096)
    x = g.op("x", "activation", [g.input("in", "batch hidden")], "batch hidden")
    n = g.op("norm", "rms_norm", [x], "batch hidden", over="hidden")
    up = g.op("up", "matmul", [n, g.weight("w1", "hidden ffn")], "batch ffn")
    down = g.op("down", "matmul", [up, g.weight("w2", "ffn hidden")], "batch hidden")
    return g.build(g.op("y", "add", [x, down], "batch hidden"))


def attention() -> Graph:
    """Queries, attention over a long cache, output projection: log-sum-exp states."""
    g = GraphBuilder("attention", batch=8, head=16, width=64, hidden=1024, context=16384)
    q = g.op("q", "matmul", [g.input("x", "batch hidden"), g.weight("wq", "hidden head width")], "batch head width")
    kv = g.cache("kv", "batch context width")
    o = g.op("attend", "attention", [q, kv], "batch head width", parts=("window",), value_bytes=128.0)
    return g.build(g.op("o", "matmul", [o, g.weight("wo", "head width hidden")], "batch hidden"))


def experts() -> Graph:
    """Dispatch, experts, combine: routed cuts and summands that pass through."""
    g = GraphBuilder("experts", batch=512, hidden=1024, ffn=2048, expert=8)
    x, gates = g.input("x", "batch hidden"), g.input("gates", "batch expert")
    rows = g.op("rows", "dispatch", [x, gates], "batch expert hidden", fill=0.25)
    up = g.op("up", "matmul", [rows, g.weight("w", "expert hidden ffn")], "batch expert ffn", fill=0.25)
    down = g.op("down", "matmul", [up, g.weight("v", "expert ffn hidden")], "batch expert hidden", fill=0.25)
    return g.build(g.op("sum", "combine", [down, gates], "batch hidden"))


def ends() -> Graph:
    """Embedding, product over the vocabulary, choice of a token: rows by id, and the best so far."""
    g = GraphBuilder("ends", batch=64, hidden=1024, vocab=65536)
    x = g.op("x", "embed", [g.input("ids", "batch", "int32"), g.weight("table", "vocab hidden")], "batch hidden")
    logits = g.op("logits", "matmul", [x, g.weight("head", "hidden vocab")], "batch vocab")
    return g.build(g.op("token", "argmax", [logits], "batch", "int32"))


def copied() -> Graph:
    """A copy that may be left out, between two products."""
    g = GraphBuilder("copied", batch=64, hidden=1024, ffn=2048)
    h = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w1", "hidden ffn")], "batch ffn")
    h = g.op("copy", "to_hbm", [h], "batch ffn")
    return g.build(g.op("down", "matmul", [h, g.weight("w2", "ffn hidden")], "batch hidden"))


def gated(hidden: int = 1024) -> Graph:
    """Norm, gate, up and their product: fusions in a chain, up to one kernel for all four."""
    g = GraphBuilder("gated", batch=64, hidden=hidden, ffn=2048)
    norm = g.op("norm", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden")
    gate = g.op("gate", "matmul", [norm, g.weight("w1", "hidden ffn")], "batch ffn")
    up = g.op("up", "matmul", [norm, g.weight("w3", "hidden ffn")], "batch ffn")
    return g.build(g.op("y", "gated_activation", [gate, up], "batch ffn"))


def down() -> Graph:
    """Down-projections of one input, apart or in one kernel, with the norm before them in that too."""
    g = GraphBuilder("down", batch=4096, hidden=1024, rank=512, latent=256)
    norm = g.op("norm", "rms_norm", [g.input("x", "batch hidden")], "batch hidden", over="hidden")
    outs = [
        g.op(name, "matmul", [norm, g.weight(f"w_{name}", f"hidden {label}")], f"batch {label}")
        for name, label in (("q", "rank"), ("kv", "latent"))
    ]
    return Joint(targets=(("q", "kv"),)).of(g.build(*outs))


#: Rounding of a sum of a few costs.
TOLERANCE = 1e-9


def compared(graph: Graph, mesh: Sequence[int], hardware: str, domain: int | None = None) -> dict[str, Extraction]:
    """Extract by either objective, try everything, and compare. Raises `AssertionError`."""
    cluster, blocks = Cluster.of(hardware, math.prod(mesh), domain=domain), split_blocks(graph)
    cost = CostModel.of(graph, cluster, Mesh.lay(cluster, mesh, stages=1), PHYSICAL)
    costed = CostedGraph.of(blocks, saturate_all(blocks, len(mesh)), cost)
    found = {}
    for objective, best in Brute(graph=graph, cost=cost).cheapest().items():
        task = Task(costed=costed, at=0, stages=(blocks.sequence,), objective=objective)  # type: ignore[arg-type]
        found[objective] = taken = extract(task, gap=0.0)
        assert taken.value_s <= best * (1 + TOLERANCE), f"{objective}: some assignment is cheaper"
        assert taken.bound_s <= best * (1 + TOLERANCE), f"{objective}: some assignment is below the bound"
        assert taken.value_s >= best * (1 - TOLERANCE), f"{objective}: brute force did not find the extraction's"
    return found


SMALL = [
    (megatron, (4,)),
    (megatron, (2, 2)),
    (residual, (4,)),
    (attention, (4,)),
    (experts, (4,)),
    (ends, (4,)),
    (ends, (2, 2)),
    (copied, (2, 4)),
    (gated, (4,)),
    (down, (4,)),
]
ACROSS = [(attention, (2, 2)), (megatron, (2, 4)), (residual, (8,)), (experts, (8,)), (ends, (2, 4))]

#: Some millions of assignments each.
LARGE = [(residual, (2, 2)), (experts, (2, 2)), (gated, (2, 2)), (down, (2, 2))]


@pytest.mark.parametrize(("build", "mesh"), SMALL, ids=[f"{b.__name__}-{m}" for b, m in SMALL])
def test_no_assignment_is_cheaper(build: Callable[[], Graph], mesh: tuple[int, ...]) -> None:
    compared(build(), mesh, "b300")


@pytest.mark.slow
@pytest.mark.parametrize(("build", "mesh"), LARGE, ids=[f"{b.__name__}-{m}" for b, m in LARGE])
def test_none_of_millions_is_cheaper(build: Callable[[], Graph], mesh: tuple[int, ...]) -> None:
    compared(build(), mesh, "b300")


@pytest.mark.parametrize(("build", "mesh"), ACROSS, ids=[f"{b.__name__}-{m}" for b, m in ACROSS])
def test_no_assignment_is_cheaper_across_nodes(build: Callable[[], Graph], mesh: tuple[int, ...]) -> None:
    """The outer axis, or half of the only one, crosses to another node."""
    compared(build(), mesh, "h200", math.prod(mesh) // 2)


def test_chains_and_joint_products_are_what_is_cheapest_here() -> None:
    """What brute force and extraction agree on is a chain of fusions, and parts of one product."""
    kernels = [
        {mode.op.kind for block in compared(graph, (4,), "b300")["sum"].plan("").blocks.values()
         for mode in block.modes.values()}
        for graph in (gated(hidden=64), down())
    ]  # fmt: skip
    assert kernels[0] == {"norm_projections"}
    assert "part" in kernels[1]


def test_batches_change_what_is_cheapest() -> None:
    """Not one and the same plan wins everywhere: there is something to lose."""
    plans = [compared(megatron(batch), (4,), "b300")["sum"].plan("") for batch in (4, 16384)]
    modes = [[mode.out for block in plan.blocks.values() for mode in block.modes.values()] for plan in plans]
    assert modes[0] != modes[1]
