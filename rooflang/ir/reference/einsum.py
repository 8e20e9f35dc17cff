"""Matrix products: `matmul`, and `gated_matmul` as silu(x·W₀) * (x·W₁)."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.einsum import GATE
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, product
from rooflang.ir.reference.elementwise import silu


def _matmul(op: Op, where: Where, operands: Arrays) -> Array:
    left, right = op.operands
    return product(operands[0], left.dims, operands[1], right.dims, op.output.dims)


def _gated(op: Op, where: Where, operands: Arrays) -> Array:
    left, right = op.operands
    dims = tuple(d for d in right.dims if d != GATE)
    gate, up = (
        product(operands[0], left.dims, np.take(operands[1], half, right.dims.index(GATE)), dims, op.output.dims)
        for half in (0, 1)
    )
    return np.asarray(silu(gate) * up)


define("matmul", plain(_matmul))
define("gated_matmul", plain(_gated))
