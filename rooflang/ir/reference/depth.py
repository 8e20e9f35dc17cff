"""A softmax mix of vectors from several depths. The summary is, by vector, the sum of squares and the product with the
query."""

from __future__ import annotations

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Reference, State, Summary, Where, define, spread
from rooflang.ir.reference.norm import EPSILON


def _vectors(op: Op, operands: Arrays) -> Array:
    """All vectors along a first axis, in the dims of the output."""
    return np.stack([spread(a, t.dims, op.output.dims) for a, t in zip(operands[2:], op.operands[2:], strict=True)])


def _axis(op: Op) -> int:
    return 1 + op.output.dims.index(op.operands[1].dims[0])


def _sums(op: Op, where: Where, operands: Arrays) -> State:
    vectors, axis = _vectors(op, operands), _axis(op)
    scale = spread(operands[0] * operands[1], op.operands[1].dims, op.output.dims)
    return np.square(vectors).sum(axis, keepdims=True), (vectors * scale).sum(axis, keepdims=True)


def _run(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    squares, products = summary
    scores = logits(products / np.sqrt(squares / where.sizes[op.operands[1].dims[0]] + EPSILON))
    weights = exp(scores - scores.max(0))
    return (np.asarray((weights / weights.sum(0) * _vectors(op, operands)).sum(0)),)


define(
    "depth_mix",
    Reference(run=_run, summary=Summary(of=_sums, merge=lambda op, a, b: (a[0] + b[0], a[1] + b[1]))),
)
