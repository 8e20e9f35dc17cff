"""Stand-ins for functions that are not known: neither linear, nor the same for two operands that change places."""

from __future__ import annotations

import numpy as np

from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread


def _pointwise(op: Op, where: Where, operands: Arrays) -> Array:
    """x₁ + 2·x₂ + 3·x₃ + … and the square of that, added."""
    shape = tuple(len(where.ids[d]) for d in op.output.dims)
    total = sum(
        (i + 1) * spread(array, tensor.dims, op.output.dims)
        for i, (array, tensor) in enumerate(zip(operands, op.operands, strict=True))
    )
    return np.array(np.broadcast_to(np.asarray(total + total * total), shape))


def _opaque(op: Op, where: Where, operands: Arrays) -> Array:
    """The number of the element, plus the sum of all elements of all operands, each by its own number."""
    shape = tuple(where.sizes[d] for d in op.output.dims)
    total = sum((array.reshape(-1) * (np.arange(array.size) % 7 + i + 1)).sum() for i, array in enumerate(operands))
    return np.asarray(np.arange(int(np.prod(shape, dtype=int))).reshape(shape) + total)


define("pointwise", plain(_pointwise))
define("opaque", plain(_opaque))
