"""Pooling a prompt into entries, its sliding window, and appending one entry or a few.

The gated mean of some numbers is Σ softmax(x)·x, for each remaining element on its own: over the positions of the entry
and all labels that an entry lacks. An entry is the same along labels that only it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread
from rooflang.ir.reference.embedding import rows_at


def ratio(op: Op, where: Where) -> int:
    """Positions pooled into one entry."""
    return -(-where.sizes[op.operands[0].dims[1]] // where.sizes[op.output.dims[1]])


def _gated_mean(values: Array, there: Array, axes: int) -> Array:
    """Over the last `axes` axes, of what is there. Nothing at all gives 0."""
    flat, held = (a.reshape(*a.shape[:-axes], math.prod(a.shape[-axes:])) for a in (values, there))
    scores = logits(np.where(held, flat, -np.inf))
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    weights = exp(scores - np.where(top > -np.inf, top, 0.0))
    total = weights.sum(-1)
    return np.asarray((weights * flat).sum(-1) / np.where(total > 0, total, 1.0))


def _to_entry(array: Array, there: Array, dims: Sequence[str], op: Op) -> Array:
    """Gated mean over the labels that an entry lacks, of what is there; extent 1 along those that only it has."""
    kept = tuple(d for d in dims if d in op.output.dims)
    lost = tuple(d for d in dims if d not in op.output.dims)
    if not lost:
        return spread(array, dims, op.output.dims)
    values, held = (spread(a, dims, (*kept, *lost)) for a in (array, there))
    return spread(_gated_mean(values, held, len(lost)), kept, op.output.dims)


def _pool(op: Op, where: Where, operands: Arrays) -> Array:
    x, entries, size = op.operands[0], op.output.dims[1], ratio(op, where)
    wanted = where.ids[entries][:, None] * size + np.arange(size)
    rows = rows_at(operands[0], 1, wanted, where.ids[x.dims[1]])
    real = wanted < where.sizes[x.dims[1]]
    there = np.broadcast_to(real.reshape(real.shape + (1,) * (rows.ndim - 2)), rows.shape)
    pooled = _to_entry(rows, there, (entries, "", x.dims[0], *x.dims[2:]), op)
    return np.broadcast_to(pooled, [len(where.ids[d]) for d in op.output.dims])


def _last_window(op: Op, where: Where, operands: Arrays) -> Array:
    x, window = op.operands[0], op.output.dims[1]
    wanted = where.sizes[x.dims[1]] - where.sizes[window] + where.ids[window]
    rows = rows_at(operands[0], 1, wanted, where.ids[x.dims[1]])
    return spread(rows, (window, x.dims[0], *x.dims[2:]), op.output.dims)


def _append(op: Op, where: Where, operands: Arrays) -> Array:
    new, cache = op.operands
    if op.attr("positions"):
        return _append_several(op, where, operands)
    last = where.ids[cache.dims[1]] == where.sizes[cache.dims[1]] - 1
    here = last.reshape(-1, *(1,) * (len(cache.dims) - 2))
    return np.where(here, _to_entry(operands[0], np.ones(operands[0].shape, bool), new.dims, op), operands[1])


def _append_several(op: Op, where: Where, operands: Arrays) -> Array:
    """Entry i of S goes to the position C − S + i of C."""
    (new, cache), several = op.operands, str(op.attr("positions"))
    at = where.ids[cache.dims[1]] - (where.sizes[cache.dims[1]] - where.sizes[several])
    rows = rows_at(operands[0], new.dims.index(several), at, where.ids[several])
    rest = tuple(d for d in new.dims if d != several)
    entries = _to_entry(rows, np.ones(rows.shape, bool), (cache.dims[1], *rest), op)
    return np.where((at >= 0).reshape(-1, *(1,) * (len(cache.dims) - 2)), entries, operands[1])


define("pool", plain(_pool))
define("last_window", plain(_last_window))
define("kv_append", plain(_append))
