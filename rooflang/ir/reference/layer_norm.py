"""Layer norm. The summary is the sum of elements and that of squares; the count is known."""

from __future__ import annotations

import numpy as np

from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Reference, State, Summary, Where, define, spread
from rooflang.ir.reference.norm import EPSILON


def _sums(op: Op, where: Where, operands: Arrays) -> State:
    x, axis = operands[0], op.operands[0].dims.index(op.attr("over"))
    return x.sum(axis=axis, keepdims=True), np.square(x).sum(axis=axis, keepdims=True)


def _run(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    x, count = op.operands[0], where.sizes[op.attr("over")]
    mean = summary[0] / count
    variance = np.maximum(summary[1] / count - mean**2, 0.0)
    gain, bias = (spread(a, t.dims, x.dims) for a, t in zip(operands[1:], op.operands[1:], strict=True))
    normed: Array = (operands[0] - mean) / np.sqrt(variance + EPSILON) * gain + bias
    return (spread(normed, x.dims, op.output.dims),)


define(
    "layer_norm",
    Reference(run=_run, summary=Summary(of=_sums, merge=lambda op, a, b: (a[0] + b[0], a[1] + b[1]))),
)
