"""Embedding rows, the last position of a sequence, and the choice of the next token.

A share that does not hold a row or a position contributes zeros, so that shares of the summed label add up to the
whole.
"""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.embedding import filled
from rooflang.ir.op import Op
from rooflang.ir.reference import topk
from rooflang.ir.reference.base import Array, Arrays, Fold, Reference, State, Where, define, plain, spread


def held(wanted: Array, ids: Array) -> tuple[Array, Array]:
    """Local positions of the wanted global indices, and whether each one is there (position 0 if not)."""
    at = np.searchsorted(ids, wanted)
    there = at < len(ids)
    if len(ids):
        there &= ids[np.minimum(at, len(ids) - 1)] == wanted
    return np.where(there, at, 0), there


def rows_at(array: Array, axis: int, wanted: Array, ids: Array) -> Array:
    """Slices along an axis at global indices, zero where the share does not hold them; the axis comes first."""
    at, there = held(wanted, ids)
    moved = np.moveaxis(array, axis, 0)
    if not len(ids):
        return np.zeros((*wanted.shape, *moved.shape[1:]), array.dtype)
    return np.asarray(moved[at] * there.reshape(there.shape + (1,) * (moved.ndim - 1)))


def _embed(op: Op, where: Where, operands: Arrays) -> Array:
    ids, table = op.operands
    rows = rows_at(operands[1], 0, operands[0], where.ids[table.dims[0]])
    return spread(rows, (*ids.dims, table.dims[1]), op.output.dims)


def _last_token(op: Op, where: Where, operands: Arrays) -> Array:
    x = op.operands[0]
    (seq,) = (d for d in x.dims if d not in op.output.dims)
    last = np.array(where.sizes[seq] - 1)
    rest = tuple(d for d in x.dims if d != seq)
    return spread(rows_at(operands[0], x.dims.index(seq), last, where.ids[seq]), rest, op.output.dims)


def _fill_in(op: Op, where: Where, operands: Arrays) -> Array:
    x, given = op.operands
    positions, source = filled(op)
    order = (positions, *(d for d in x.dims if d != positions))
    own = spread(operands[0], x.dims, order)
    rows = rows_at(operands[1], given.dims.index(source), where.ids[positions], where.ids[source])
    rows = spread(rows, (positions, *(d for d in given.dims if d != source)), order)
    taken = (where.ids[positions] < where.sizes[source]).reshape(-1, *(1,) * (own.ndim - 1))
    return spread(np.where(taken, rows, own), order, op.output.dims)


def _argmax(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    x = op.operands[0]
    rows = x.dims[:-1]
    values, ids = topk.best(operands[0], where.ids[x.dims[-1]], 1)
    return tuple(spread(a[..., 0], rows, op.output.dims) for a in (values, ids))


def _better(op: Op, a: State, b: State) -> State:
    values, ids = topk.merge(tuple(x[..., None] for x in a), tuple(x[..., None] for x in b), 1)
    return values[..., 0], ids[..., 0]


define(
    "embed",
    Reference(
        run=lambda op, where, summary, operands: (_embed(op, where, operands),),
        ids=lambda op: {0: op.operands[1].dims[0]},
    ),
)
define("last_token", plain(_last_token))
define("fill_in", plain(_fill_in))
define(
    "argmax",
    Reference(
        run=_argmax,
        fold=Fold(
            combine=_better,
            finish=lambda op, state: state[1],
            dims=lambda op: (op.output.dims, op.output.dims),
        ),
    ),
)
