"""Groups repeated for their members by the members' global numbers, and two dims counted as one."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.heads import replaced
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread
from rooflang.ir.reference.embedding import held, rows_at


def _repeat(op: Op, where: Where, operands: Arrays) -> Array:
    (group,), member = replaced(op)
    dims = op.operands[0].dims
    each = -(-where.sizes[member] // where.sizes[group])
    rows = rows_at(operands[0], dims.index(group), where.ids[member] // each, where.ids[group])
    return spread(rows, (member, *(d for d in dims if d != group)), op.output.dims)


def _flatten(op: Op, where: Where, operands: Arrays) -> Array:
    (outer, inner), new = replaced(op)
    dims = op.operands[0].dims
    rest = tuple(d for d in dims if d not in (outer, inner))
    moved = spread(operands[0], dims, (outer, inner, *rest))
    rows, outer_there = held(where.ids[new] // where.sizes[inner], where.ids[outer])
    columns, inner_there = held(where.ids[new] % where.sizes[inner], where.ids[inner])
    if not moved.shape[0] or not moved.shape[1]:
        return np.zeros([len(where.ids[d]) for d in op.output.dims], operands[0].dtype)
    there = (outer_there & inner_there).reshape(-1, *(1,) * len(rest))
    return spread(np.asarray(moved[rows, columns] * there), (new, *rest), op.output.dims)


define("repeat", plain(_repeat))
define("flatten", plain(_flatten))
