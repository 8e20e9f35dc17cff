"""Costs where some experts are chosen more often than others: those of the busiest rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.cost import Cost
from rooflang.ir.cut import CutKind
from rooflang.ir.graph import Graph
from rooflang.ir.layout import make_transfer
from rooflang.ir.tensor import Num

from .test_model import cut, experts, mode, near
from .toy import BF16, HBM, NVLINK, model

#: Eight experts, two to a token: of 16 choices the four ranks' experts get 8, 4, 2 and 2.
SKEWED = replace(PHYSICAL, expert_histogram=(5.0, 3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0))
EVEN = replace(PHYSICAL, expert_histogram=(2.0,) * 8)
CHANCES = np.array([5, 3, 2, 2, 1, 1, 1, 1]) / 8


def cost(assumptions: Assumptions, op: str, dim: str, kind: CutKind | None = None, *, batch: Num = None) -> Cost:
    graph = experts(16)
    return model(graph, [4], assumptions=assumptions, batch=batch).mode(mode(graph, op, cut(graph, op, dim, kind)))


def test_the_busiest_rank_computes_longest() -> None:
    flops = 2 * 16 * 2 * 64 * 128 / 4
    assert cost(PHYSICAL, "up", "expert").compute_s == near(flops / BF16)
    assert cost(EVEN, "up", "expert").compute_s == near(flops / BF16)
    assert cost(SKEWED, "up", "expert").compute_s == near(2 * flops / BF16)


def test_it_moves_its_own_rows_and_reads_the_experts_that_it_runs() -> None:
    rows = 16 * 2 * (64 + 128) * 2 / 4
    weights = 8 * 64 * 128 * 2 / 4
    met = 1 - (1 - CHANCES[:2]) ** 16
    assert cost(SKEWED, "up", "expert").memory_s == near((2 * rows + weights * met.mean()) / HBM)


def test_few_tokens_read_most_experts_where_popularity_is_even() -> None:
    """The rank that reads most need not be the one with most rows: of each quantity the most counts."""
    found = cost(SKEWED, "up", "expert", batch=np.array([1.0, 16.0])).memory_s
    met = 1 - (1 - CHANCES[:2]) ** 1
    assert found[0] == near((2 * 2 * (64 + 128) * 2 / 4 + 8 * 64 * 128 * 2 / 4 * met.mean()) / HBM)
    assert found[1] > found[0]


@pytest.mark.parametrize("dim", ["ffn", "batch"])
def test_ranks_with_all_experts_are_alike(dim: str) -> None:
    """Cut by width or by tokens, every rank has all experts; only what few tokens read of them is less."""
    plain, skewed = cost(PHYSICAL, "up", dim), cost(SKEWED, "up", dim)
    assert skewed.compute_s == near(plain.compute_s)
    assert skewed.memory_s <= plain.memory_s * (1 + 1e-12)


def test_routed_rows_cross_to_the_busiest_rank() -> None:
    """Half of the choices are its own: a copy of a token for 1 − (1 − 1/2)² of all, where 1 − (3/4)² would be even."""
    plain, skewed = (cost(a, "rows", "batch", CutKind.ROUTE).levels_s["nvlink"] for a in (PHYSICAL, SKEWED))
    assert plain == near(0.75 * 16 * (1 - 0.75**2) * 64 * 2 / NVLINK)
    assert skewed == near(0.75 * 16 * (1 - 0.5**2) * 64 * 2 / NVLINK)


def test_an_all_to_all_takes_as_long_as_its_fullest_receiver() -> None:
    graph = experts(16)
    rows = graph.tensors["rows"]
    move = make_transfer("rows", ("batch",), ("expert",))
    plain, skewed = (model(graph, [4], assumptions=a).transfer(rows, move).network_s for a in (PHYSICAL, SKEWED))
    assert skewed == near(2 * plain)
    back = make_transfer("rows", ("expert",), ("batch",))
    assert model(graph, [4], assumptions=SKEWED).transfer(rows, back).network_s == near(skewed)


def test_rows_of_the_busiest_rank_fill_its_memory() -> None:
    graph = experts(16)
    costs = model(graph, [4], assumptions=SKEWED)
    rows, weights = graph.tensors["rows"], graph.tensors["w"]
    assert costs.bytes(rows, ("expert",)) == near(2 * costs.bytes(rows, ("batch",)))
    assert costs.bytes(weights, ("expert",)) == near(8 * 64 * 128 * 2 / 4)


def test_fewer_larger_ranks_are_more_even() -> None:
    """Replicated experts: tokens over one axis, experts over the other."""
    graph: Graph = experts(16)
    by_token, by_expert = cut(graph, "up", "batch"), cut(graph, "up", "expert")
    costs = model(graph, [2, 2], assumptions=SKEWED)
    replicated = costs.mode(mode(graph, "up", by_token, by_expert)).compute_s
    spread = costs.mode(mode(graph, "up", by_expert, by_expert)).compute_s
    assert (replicated, spread) == near((0.75 * spread, 2 * 16 * 2 * 64 * 128 * 8 / 16 / BF16))


def test_a_graph_without_experts_costs_the_same() -> None:
    from .test_model import product

    graph = product()
    one, other = (model(graph, [4], assumptions=a) for a in (PHYSICAL, SKEWED))
    by_batch = mode(graph, "y", cut(graph, "y", "batch"))
    assert one.mode(by_batch) == other.mode(by_batch)
