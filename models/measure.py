"""What can be read off a graph without running it: parameters, weight bytes, KV bytes."""

from __future__ import annotations

from collections.abc import Iterator

from rooflang.assumptions import Assumptions
from rooflang.ir.graph import Graph
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import INDEX_DTYPES, Role, Tensor

#: What a request keeps in memory between steps.
_KEPT = (Role.KV_CACHE, Role.STATE)


def parameters(graph: Graph) -> float:
    """Weights of a graph. Integer tables (token id → experts) hold no parameters."""
    return float(sum(t.elements(graph.sizes) for t in _weights(graph)))


def active_parameters(graph: Graph) -> float:
    """Weights that one token meets: of weights per expert, the share of the experts that a token is routed to."""
    return float(sum(share * weight.elements(graph.sizes) for weight, share in met(graph)))


def met(graph: Graph) -> Iterator[tuple[Tensor, float]]:
    """Weights, each with the share of it that one token meets."""
    for weight in _weights(graph):
        yield weight, max(op.operands[0].fill for op, _ in graph.consumers[weight.name])


def weight_bytes(graph: Graph) -> float:
    """Bytes of all weights as stored, scales included: P in the RoofLang paper."""
    return graph.leaf_bytes(Role.WEIGHT)


def kv_footprint_bytes(graph: Graph) -> float:
    """Bytes of KV cache and recurrent state that one request of a decode graph keeps in memory."""
    return graph.leaf_bytes(*_KEPT) / graph.sizes["batch"]


def kv_read_bytes(graph: Graph, assumptions: Assumptions) -> float:
    """Bytes of KV cache and recurrent state that one request of a decode graph reads in a step: T_KV in the RoofLang
    paper."""
    total = 0.0
    for op in graph.ops:
        for index, tensor in enumerate(op.operands):
            if tensor.role in _KEPT:
                share = op_kind(op.kind).read_fraction(op, index, graph.sizes, graph.sizes, assumptions)
                total += share * tensor.bytes(graph.sizes)
    return total / graph.sizes["batch"]


def _weights(graph: Graph) -> list[Tensor]:
    return [t for t in graph.leaves if t.role is Role.WEIGHT and t.dtype not in INDEX_DTYPES]
