"""Costs for an array of batch sizes equal those of each alone, for every cut of every operator of real models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from rooflang.assumptions import PAPER, PHYSICAL, Assumptions
from rooflang.cost import Cost, CostModel
from rooflang.hw import Cluster, Mesh
from rooflang.ir.blocks import split_blocks
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED
from rooflang.ir.graph import Graph
from rooflang.ir.layout import Mode, collective_of, make_mode, make_transfer
from rooflang.ir.op import op_kind, signature
from rooflang.models import Workload, load

BATCHES = (1, 2, 6, 16, 1000)


def graph_of(stage: str, assumptions: Assumptions) -> Graph:
    return load("deepseek-v4-flash").build(Workload(stage=stage, context=4096, batch=1), assumptions)  # type: ignore[arg-type]


def modes(graph: Graph) -> Iterator[Mode]:
    """Along the inner axis every row of the signature, along the outer one a cut of the batch where there is one."""
    for kind in split_blocks(graph).kinds:
        for op in kind.ops:
            rows = signature(op)
            outer = next((cut for cut in rows if cut.dim == "batch"), REPLICATED)
            for inner in (*rows, *([REPLICATED, OWNER] if op_kind(op.kind).pure else [])):
                yield make_mode(op, (outer, inner))


def same(many: Cost, one: Cost, index: int, where: str) -> None:
    for name in ("compute_s", "memory_s", "alpha_s", "network_s", "exposed_s"):
        found = np.broadcast_to(getattr(many, name), (len(BATCHES),))[index]
        if np.isinf(one.local_s):
            assert np.isinf(np.broadcast_to(many.local_s, (len(BATCHES),))[index]), where
        else:
            assert found == pytest.approx(getattr(one, name), rel=1e-12, abs=0), f"{where}: {name}"


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=lambda a: a.name)
@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_many_batch_sizes_cost_what_each_costs(stage: str, assumptions: Assumptions) -> None:
    graph = graph_of(stage, assumptions)
    cluster = Cluster.of("b300", 16)
    mesh = Mesh.lay(cluster, [2, 8])
    together = CostModel.of(graph, cluster, mesh, assumptions, batch=np.array(BATCHES, np.float64))
    alone = [CostModel.of(graph, cluster, mesh, assumptions, batch=batch) for batch in BATCHES]
    finite = impossible = 0
    for mode in modes(graph):
        cost = together.mode(mode)
        for index, costs in enumerate(alone):
            one = costs.mode(mode)
            same(cost, one, index, f"{mode.op.name} {mode.out}")
            finite += bool(np.isfinite(one.local_s))
            impossible += bool(np.isinf(one.local_s))
    assert finite > 200
    assert impossible > 100


def test_transfers_of_many_batch_sizes_cost_what_each_costs() -> None:
    graph = graph_of("decode", PHYSICAL)
    cluster = Cluster.of("gb300", 16, domain=8)
    mesh = Mesh.lay(cluster, [2, 8])
    together = CostModel.of(graph, cluster, mesh, PHYSICAL, batch=np.array(BATCHES, np.float64))
    alone = [CostModel.of(graph, cluster, mesh, PHYSICAL, batch=batch) for batch in BATCHES]
    tensor = graph.op_by_name["layers.2.attention"].output
    states = (REPLICATED, PARTIAL, OWNER, "batch", "head")
    moves = [(a, b) for a in states for b in states if collective_of(a, b)]
    assert len(moves) == 11
    for before, after in moves:
        for outer in ("group", PARTIAL):
            transfer = make_transfer(tensor.name, (outer, before), (outer, after))
            cost = together.transfer(tensor, transfer)
            sizes = np.broadcast_to(together.bytes(tensor, transfer.after), (len(BATCHES),))
            for index, costs in enumerate(alone):
                same(cost, costs.transfer(tensor, transfer), index, f"{before} → {after}")
                assert sizes[index] == costs.bytes(tensor, transfer.after)


@pytest.mark.parametrize("assumptions", [PHYSICAL, PAPER], ids=lambda a: a.name)
def test_transfers_of_one_tensor_cost_together_what_each_costs(assumptions: Assumptions) -> None:
    graph = graph_of("decode", assumptions)
    cluster = Cluster.of("gb300", 16, domain=8)
    batch = np.array(BATCHES, np.float64)
    cost = CostModel.of(graph, cluster, Mesh.lay(cluster, [2, 8]), assumptions, batch=batch)
    tensor = graph.op_by_name["layers.2.attention"].output
    states = (REPLICATED, PARTIAL, OWNER, "batch", "head")
    ends = [(a, b) for a in states for b in states if collective_of(a, b)]
    moves = [
        make_transfer(tensor.name, before, after)
        for a, b in ends
        for other in ("group", REPLICATED)
        for before, after in [((other, a), (other, b)), ((a, other), (b, other))]
    ]
    for transfer, seconds in zip(moves, cost.transfers_s(tensor, moves), strict=True):
        alone = cost.transfer(tensor, transfer)
        assert np.all(seconds == np.where(np.isinf(alone.local_s), np.inf, alone.exposed_s)), transfer
    assert cost.transfers_s(tensor, []).shape == (0, len(BATCHES))


@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_work_that_is_divided_adds_up(stage: str) -> None:
    """Over the ranks of an axis a cut that shrinks loops keeps the FLOPs of the operator; one that does not repeats
    them on every rank."""
    graph = graph_of(stage, PAPER)
    cluster = Cluster.of("b300", 8)
    whole = CostModel.of(graph, cluster, Mesh.lay(cluster, [8]), PAPER, batch=64)
    for kind in split_blocks(graph).kinds:
        for op in kind.ops:
            alone = whole.mode(make_mode(op, (REPLICATED,))).compute_s
            for cut in signature(op):
                cost = whole.mode(make_mode(op, (cut,)))
                parts = 8 if cut.loops else 1
                # Scores of an index are those of all heads: ranks that share heads repeat them.
                repeats = "index" in op.attr("parts", ()) and cut.dim in ("group", "head")
                if np.isfinite(cost.compute_s):
                    assert cost.compute_s * parts >= alone * (1 - 1e-12), f"{op.name} by {cut.dim}"
                    assert repeats or cost.compute_s * parts == pytest.approx(alone, rel=1e-12), op.name
