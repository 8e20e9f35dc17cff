"""x + b and x · c."""

from __future__ import annotations

import numpy as np

from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread


def _bias(op: Op, where: Where, operands: Arrays) -> Array:
    x, b = (spread(a, t.dims, op.output.dims) for a, t in zip(operands, op.operands, strict=True))
    return np.asarray(x + b)


def _scale(op: Op, where: Where, operands: Arrays) -> Array:
    return np.asarray(spread(operands[0], op.operands[0].dims, op.output.dims) * op.attr("factor", 1.0))


define("bias", plain(_bias))
define("scale", plain(_scale))
