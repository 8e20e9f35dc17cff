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


def _rowwise(op: Op, where: Where, operands: Arrays) -> Array:
    """The number of the element within its row, plus the sum of all elements of that row, each by its own number."""
    out = op.output.dims
    held = {d for tensor in op.operands for d in tensor.dims}
    total = sum(_of_rows(op, where, array, i) for i, array in enumerate(operands))
    for number, label in enumerate(out):
        if label not in held:
            total = total + (number + 1) * spread(where.ids[label], (label,), out)
    return np.array(np.broadcast_to(np.asarray(total), tuple(len(where.ids[d]) for d in out)))


def _of_rows(op: Op, where: Where, array: Array, index: int) -> Array:
    """What one operand adds to each row, over the labels of the output."""
    dims, out = op.operands[index].dims, op.output.dims
    for label in [d for d in dims if d not in out]:
        array = array * spread(where.ids[label] % 7 + index + 1, (label,), dims)
    own = tuple(i for i, d in enumerate(dims) if d not in out)
    return spread(array.sum(axis=own) if own else array * (index + 1), [d for d in dims if d in out], out)


define("rowwise", plain(_rowwise))
define("pointwise", plain(_pointwise))
define("opaque", plain(_opaque))
