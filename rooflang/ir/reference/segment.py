"""Consecutive elements of a dim by their global indices, and a dim read as two or as another."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.segment import PART, parted, start
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread
from rooflang.ir.reference.embedding import rows_at


def _segment(op: Op, where: Where, operands: Arrays) -> Array:
    old, (new,) = parted(op)
    dims = op.operands[0].dims
    rows = rows_at(operands[0], dims.index(old), start(op, where.sizes) + where.ids[new], where.ids[old])
    return spread(rows, (new, *(d for d in dims if d != old)), op.output.dims)


def _view(op: Op, where: Where, operands: Arrays) -> Array:
    old, (outer, inner) = parted(op)
    dims = op.operands[0].dims
    wanted = where.ids[outer][:, None] * where.sizes[inner] + where.ids[inner]
    rows = rows_at(operands[0], dims.index(old), wanted, where.ids[old])
    return np.asarray(spread(rows, (outer, inner, *(d for d in dims if d != old)), op.output.dims))


def _rename(op: Op, where: Where, operands: Arrays) -> Array:
    old, (new,) = parted(op)
    dims = op.operands[0].dims
    rows = rows_at(operands[0], dims.index(old), where.ids[new], where.ids[old])
    return spread(rows, (new, *(d for d in dims if d != old)), op.output.dims)


define("segment", plain(_segment))
define(PART, plain(_segment))
define("view", plain(_view))
define("rename", plain(_rename))
