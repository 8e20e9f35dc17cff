"""Attention of many heads against plain loops: sinks, squashed scores, windows and chunks."""

from __future__ import annotations

from math import exp, inf, sqrt, tanh

import numpy as np
import pytest

from rooflang.errors import GraphError
from rooflang.ir import GraphBuilder
from rooflang.ir.op import op_kind
from rooflang.ir.reference import reference
from rooflang.ir.reference.base import Array

HEADS, KV, DIM, VALUE, CONTEXT = 4, 2, 3, 2, 5


def attend(q: Array, k: Array, v: Array, sinks: Array, *, first: int, cap: float = 0.0, sees: object = None) -> Array:
    """Query i stands at `first` + i; `sees(at, key)` says whether it attends a key."""
    out = np.zeros((*q.shape[:-1], VALUE))
    for b, i, h in np.ndindex(q.shape[:-1]):
        group = h // (HEADS // KV)
        scores = [sum(q[b, i, h] * k[b, j, group]) / sqrt(DIM) for j in range(k.shape[1])]
        scores = [cap * tanh(s / cap) if cap else s for s in scores]
        weights = [exp(s) if sees(first + i, j) else 0.0 for j, s in enumerate(scores)]  # type: ignore[operator]
        total = sum(weights) + exp(sinks[h])
        out[b, i, h] = sum(w / total * v[b, j, group] for j, w in enumerate(weights))
    return out


@pytest.mark.parametrize(
    ("attrs", "sees"),
    [
        ({}, lambda at, key: True),
        ({"causal": True}, lambda at, key: key <= at),
        ({"window": 2}, lambda at, key: at - 2 < key <= at),
        ({"causal": True, "chunk": 2}, lambda at, key: key <= at and key // 2 == at // 2),
        ({"chunk": 2}, lambda at, key: key // 2 == at // 2),
    ],
    ids=["all", "causal", "window", "chunk", "images"],
)
@pytest.mark.parametrize("cap", [0.0, 1.5])
@pytest.mark.parametrize("with_sinks", [False, True])
def test_attention(attrs: dict[str, object], sees: object, cap: float, with_sinks: bool) -> None:
    rng = np.random.default_rng(0)
    sizes = {"batch": 2, "seq": 3, "head": HEADS, "kv": KV, "dim": DIM, "val": VALUE, "ctx": CONTEXT}
    q, k, v = (rng.normal(size=s) for s in ((2, 3, HEADS, DIM), (2, CONTEXT, KV, DIM), (2, CONTEXT, KV, VALUE)))
    sinks = rng.normal(size=HEADS)
    g = GraphBuilder("g", **sizes)
    operands = [g.input("q", "batch seq head dim"), g.cache("k", "batch ctx kv dim"), g.cache("v", "batch ctx kv val")]
    if with_sinks:
        operands.append(g.weight("s", "head"))
        attrs = {**attrs, "sinks": True}
    if cap:
        attrs = {**attrs, "soft_cap": cap}
    graph = g.build(g.op("y", "grouped_attention", operands, "batch seq head val", **attrs))
    given = [q, k, v, sinks][: len(operands)]
    found = reference("grouped_attention").full(graph.ops[0], sizes, *given)
    bare = sinks if with_sinks else np.full(HEADS, -inf)
    assert found == pytest.approx(attend(q, k, v, bare, first=CONTEXT - 3, cap=cap, sees=sees))


@pytest.mark.parametrize(
    ("attrs", "keys"),
    [
        ({"causal": True}, (5 + 6 + 7 + 8) / 4),
        ({"causal": True, "window": 6}, (5 + 6 + 6 + 6) / 4),
        ({"causal": True, "window": 3}, 3),
        ({"causal": True, "chunk": 3}, 2),
        ({"chunk": 3}, 3),
        ({}, 8),
    ],
    ids=["causal", "long window", "window", "chunk", "images", "all"],
)
def test_flops_count_the_keys_that_are_seen(attrs: dict[str, object], keys: float) -> None:
    sizes = {"batch": 1, "seq": 4, "head": 2, "kv": 1, "dim": 16, "val": 8, "ctx": 8}
    g = GraphBuilder("g", **sizes)
    operands = [g.input("q", "batch seq head dim"), g.cache("k", "batch ctx kv dim"), g.cache("v", "batch ctx kv val")]
    graph = g.build(g.op("y", "grouped_attention", operands, "batch seq head val", **attrs))
    (op,) = graph.ops
    assert sum(op_kind(op.kind).flops(op, sizes, sizes).values()) == pytest.approx(2 * 4 * 2 * keys * (16 + 8))


@pytest.mark.parametrize(
    ("attrs", "match"),
    [({"sinks": True}, "takes 4 operands"), ({"soft_cap": -1.0}, "soft_cap"), ({"chunk": -1}, "chunk")],
)
def test_what_does_not_fit(attrs: dict[str, object], match: str) -> None:
    g = GraphBuilder("g", batch=1, head=2, kv=1, dim=2, val=2, ctx=2)
    operands = [g.input("q", "batch head dim"), g.cache("k", "batch ctx kv dim"), g.cache("v", "batch ctx kv val")]
    with pytest.raises(GraphError, match=match):
        g.build(g.op("y", "grouped_attention", operands, "batch head val", **attrs))
