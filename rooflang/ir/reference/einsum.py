"""Matrix products: `matmul`, and `gated_matmul` as f(x·W₀ + b₀) * (x·W₁ + b₁)."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.einsum import GATE
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, product, spread
from rooflang.ir.reference.gated import gated


def _matmul(op: Op, where: Where, operands: Arrays) -> Array:
    left, right = op.operands
    return product(operands[0], left.dims, operands[1], right.dims, op.output.dims)


def _half(op: Op, operands: Arrays, half: int) -> Array:
    """One of the two products, with its bias."""
    left, dims = op.operands[0].dims, [tuple(d for d in t.dims if d != GATE) for t in op.operands]
    weight, *bias = (np.take(a, half, t.dims.index(GATE)) for a, t in zip(operands[1:], op.operands[1:], strict=True))
    made = product(operands[0], left, weight, dims[1], op.output.dims)
    return made + spread(bias[0], dims[2], op.output.dims) if bias else made


def _gated(op: Op, where: Where, operands: Arrays) -> Array:
    return gated(op, _half(op, operands, 0), _half(op, operands, 1))


define("matmul", plain(_matmul))
define("gated_matmul", plain(_gated))
