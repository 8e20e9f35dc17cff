"""Keys and values of every head from latent entries."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.expand import keeps_rotary
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, product, spread


def _expand(op: Op, where: Where, operands: Arrays) -> Array:
    entries, weight = op.operands
    head, part, rank = weight.dims
    count = where.sizes[rank]
    dims = (*entries.dims[:2], head, part)
    made = product(operands[0][..., :count], (*entries.dims[:2], rank), operands[1], weight.dims, dims)
    if not keeps_rotary(op):
        return spread(made, dims, op.output.dims)
    rotary = operands[0][..., None, count:]
    shared = np.broadcast_to(rotary, (*made.shape[:-1], rotary.shape[-1]))
    return spread(np.concatenate([made, shared], -1), (*dims[:3], op.output.dims[-1]), op.output.dims)


define("expand_latent", plain(_expand))
