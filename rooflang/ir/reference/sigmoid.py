"""x · sigmoid(g)."""

from __future__ import annotations

import numpy as np

from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread
from rooflang.ir.reference.elementwise import sigmoid


def _sigmoid_mul(op: Op, where: Where, operands: Arrays) -> Array:
    x, gate = (spread(a, t.dims, op.output.dims) for a, t in zip(operands, op.operands, strict=True))
    return np.asarray(x * sigmoid(gate))


define("sigmoid_mul", plain(_sigmoid_mul))
