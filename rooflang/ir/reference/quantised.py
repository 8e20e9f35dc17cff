"""A product of activations that are rounded block by block."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.quantised import BLOCK
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, product

#: The largest finite number of FP8 E4M3 (OCP 8-bit floating point specification, revision 1.0).
LARGEST = 448.0


def _rounded(x: Array, blocks: Array) -> Array:
    """Elements as multiples of their block's scale; `blocks` numbers the block of each element of the last axis."""
    out = x.copy()
    for block in dict.fromkeys(blocks.tolist()):
        part = x[..., blocks == block]
        scale = np.max(np.abs(part), -1, keepdims=True) / LARGEST
        scale = np.where(scale > 0, scale, 1.0)
        out[..., blocks == block] = np.rint(part / scale) * scale
    return out


def _run(op: Op, where: Where, operands: Arrays) -> Array:
    x, weight = op.operands
    blocks = where.ids[x.dims[-1]] // op.attr("block", BLOCK)
    return product(_rounded(operands[0], blocks), x.dims, operands[1], weight.dims, op.output.dims)


define("block_matmul", plain(_run))
