"""RMS norm: x / √(mean of squares + ε), times the gain. The summary is the sum of squares; the count is known."""

from __future__ import annotations

import numpy as np

from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Reference, State, Summary, Where, define, spread

#: Keeps a row of zeros finite; the usual value of `rms_norm_eps`.
EPSILON = 1e-6


def _squares(op: Op, where: Where, operands: Arrays) -> State:
    axis = op.operands[0].dims.index(op.attr("over"))
    return (np.sum(np.square(operands[0]), axis=axis, keepdims=True),)


def _add(op: Op, a: State, b: State) -> State:
    return (a[0] + b[0],)


def _run(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    x = op.operands[0]
    normed: Array = operands[0] / np.sqrt(summary[0] / where.sizes[op.attr("over")] + EPSILON)
    if len(operands) > 1:
        normed = normed * spread(operands[1], op.operands[1].dims, x.dims)
    return (spread(normed, x.dims, op.output.dims),)


define("rms_norm", Reference(run=_run, summary=Summary(of=_squares, merge=_add)))
