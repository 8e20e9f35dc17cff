"""Attention of heads that share keys and values in groups. A partial result is (m, l, o) as of `attention`."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.grouped import labels
from rooflang.ir.op import Op
from rooflang.ir.reference import softmax
from rooflang.ir.reference.base import Array, Arrays, Fold, Reference, State, Where, define, product, spread
from rooflang.ir.reference.embedding import rows_at


def _own(op: Op, where: Where, array: Array, index: int) -> Array:
    """Keys or values (batch, positions, heads of this share, width): each head's group by its global number."""
    _, head, shared, _ = labels(op)
    each = -(-where.sizes[head] // where.sizes[shared])
    return np.moveaxis(rows_at(array, 2, where.ids[head] // each, where.ids[shared]), 0, 2)


def _seen(op: Op, where: Where) -> Array:
    """Which positions each query of this share sees: (queries, positions)."""
    context, query = labels(op)[0], op.operands[0].dims
    ids, last = where.ids[context], where.sizes[context] - 1
    at = last - where.sizes[query[1]] + 1 + where.ids[query[1]] if len(query) == 4 else np.array([last])
    distance = at[:, None] - ids
    mask = np.ones(distance.shape, bool)
    if op.attr("causal"):
        mask &= distance >= 0
    if op.attr("window"):
        mask &= (distance >= 0) & (distance < op.attr("window"))
    if op.attr("chunk"):
        mask &= at[:, None] // op.attr("chunk") == ids // op.attr("chunk")
    return mask


def _sinks(op: Op, where: Where, sinks: Array, score: Array) -> Array:
    """Scores (rows, 1) of the sinks, −∞ on all shares but the one that holds the first position."""
    here = bool(len(where.ids[labels(op)[0]])) and where.ids[labels(op)[0]][0] == 0
    own = spread(sinks, op.operands[3].dims, softmax.rows(op))[..., None]
    return np.broadcast_to(own if here else np.full(own.shape, -np.inf), (*score.shape[:-1], 1))


def _run(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    q, k, v = op.operands[:3]
    context, head, _, _ = labels(op)
    rows = softmax.rows(op)
    keys, values = _own(op, where, operands[1], 1), _own(op, where, operands[2], 2)
    key_dims, value_dims = (k.dims[0], context, head, k.dims[3]), (k.dims[0], context, head, v.dims[3])
    score = product(operands[0], q.dims, keys, key_dims, (*rows, context)) / np.sqrt(where.sizes[q.dims[-1]])
    query = q.dims[1] if len(q.dims) == 4 else ""
    mask = spread(_seen(op, where), (query, context), (*rows, context)) if query else _seen(op, where)[0]
    if op.attr("soft_cap"):
        score = op.attr("soft_cap") * np.tanh(score / op.attr("soft_cap"))
    keyed = [(np.where(mask, score, -np.inf), values, value_dims)]
    if op.attr("sinks"):
        nothing = np.zeros((*values.shape[:1], 1, *values.shape[2:]))
        keyed.append((_sinks(op, where, operands[3], score), nothing, value_dims))
    return softmax.attend(op, keyed)


define(
    "grouped_attention",
    Reference(run=_run, fold=Fold(combine=softmax.combine, finish=softmax.finish, dims=softmax.dims)),
)
