"""Pooling a prompt into entries, its sliding window, and appending one entry.

The gated mean of some numbers is Σ softmax(x)·x, for each remaining element on its own: over the positions of the entry
and all labels that an entry lacks. An entry is the same along labels that only it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread
from rooflang.ir.reference.embedding import rows_at


def ratio(op: Op, where: Where) -> int:
    """Positions pooled into one entry."""
    return -(-where.sizes[op.operands[0].dims[1]] // where.sizes[op.output.dims[1]])


def _gated_mean(values: Array, axes: int) -> Array:
    """Over the last `axes` axes; NaN marks what is not there. Nothing at all gives 0."""
    flat = values.reshape(*values.shape[:-axes], math.prod(values.shape[-axes:]))
    there = ~np.isnan(flat)
    top = np.max(flat, -1, keepdims=True, initial=-np.inf, where=there)
    weights = np.where(there, np.exp(np.where(there, flat, 0.0) - np.where(np.isfinite(top), top, 0.0)), 0.0)
    total = weights.sum(-1)
    return np.asarray((weights * np.where(there, flat, 0.0)).sum(-1) / np.where(total > 0, total, 1.0))


def _to_entry(array: Array, dims: Sequence[str], op: Op) -> Array:
    """Gated mean over the labels that an entry lacks; extent 1 along those that only it has."""
    kept = tuple(d for d in dims if d in op.output.dims)
    lost = tuple(d for d in dims if d not in op.output.dims)
    if not lost:
        return spread(array, dims, op.output.dims)
    return spread(_gated_mean(spread(array, dims, (*kept, *lost)), len(lost)), kept, op.output.dims)


def _pool(op: Op, where: Where, operands: Arrays) -> Array:
    x, entries, size = op.operands[0], op.output.dims[1], ratio(op, where)
    wanted = where.ids[entries][:, None] * size + np.arange(size)
    rows = rows_at(operands[0], 1, wanted, where.ids[x.dims[1]])
    real = wanted < where.sizes[x.dims[1]]
    rows = np.where(real.reshape(real.shape + (1,) * (rows.ndim - 2)), rows, np.nan)
    pooled = _to_entry(rows, (entries, "", x.dims[0], *x.dims[2:]), op)
    return np.broadcast_to(pooled, [len(where.ids[d]) for d in op.output.dims])


def _last_window(op: Op, where: Where, operands: Arrays) -> Array:
    x, window = op.operands[0], op.output.dims[1]
    wanted = where.sizes[x.dims[1]] - where.sizes[window] + where.ids[window]
    rows = rows_at(operands[0], 1, wanted, where.ids[x.dims[1]])
    return spread(rows, (window, x.dims[0], *x.dims[2:]), op.output.dims)


def _append(op: Op, where: Where, operands: Arrays) -> Array:
    new, cache = op.operands
    last = where.ids[cache.dims[1]] == where.sizes[cache.dims[1]] - 1
    here = last.reshape(-1, *(1,) * (len(cache.dims) - 2))
    return np.where(here, _to_entry(operands[0], new.dims, op), operands[1])


define("pool", plain(_pool))
define("last_window", plain(_last_window))
define("kv_append", plain(_append))
