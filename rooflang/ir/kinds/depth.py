"""Attention residuals (Kimi team, arXiv 2603.15031): a sub-layer reads a softmax mix of vectors from several depths.

`depth_mix` takes a gain and a query, both (hidden), then the vectors v₀ … vₙ, all with the dims of the output. The mix
is Σ αᵢ·vᵢ with α = softmax over i of query · (RMS norm of vᵢ, times the gain). The label that is mixed is the query's.
Vectors that come from other blocks lie alike: one more layout each would multiply those to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut, CutKind
from rooflang.ir.kinds.rows import expect_labels, par
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

#: Bytes that shards of a vector exchange about it: its FP32 sum of squares and product with the query.
SUMS_BYTES = 8.0


def _check(op: Op) -> None:
    if len(op.operands) < 3:
        raise GraphError(f"{op.name}: {op.kind} takes a gain, a query and vectors, not {len(op.operands)} operands")
    gain, query, *vectors = op.operands
    if len(query.dims) != 1 or query.dims[0] not in op.output.dims:
        raise GraphError(f"{op.name}: {query.name} has the dims {' '.join(query.dims)}", expected="the mixed dim alone")
    expect_labels(op, gain.dims, query.dims, gain.name)
    for vector in vectors:
        expect_labels(op, vector.dims, op.output.dims, vector.name)


def _cuts(op: Op) -> tuple[Cut, ...]:
    (hidden,) = op.operands[1].dims
    rows = tuple(d for d in op.output.dims if d != hidden)
    stat = Cut(
        kind=CutKind.STAT,
        dim=hidden,
        operands=(hidden,) * len(op.operands),
        out=hidden,
        loops=(hidden,),
        stat_rows=rows,
        stat_bytes=SUMS_BYTES * (len(op.operands) - 2),
    )
    return (*(par(op, d) for d in rows), stat)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Per element of every vector: a square, the gain, a product with the query, a weighted sum; in FP32."""
    return {"fp32": 7.0 * (len(op.operands) - 2) * op.output.elements(local)}


register(
    OpKind(
        name="depth_mix",
        summary="softmax mix of vectors from several depths; operands: gain, query, the vectors",
        cuts=_cuts,
        flops=_flops,
        check=_check,
        alike=True,
    )
)
