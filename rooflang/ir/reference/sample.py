"""Gumbel noise and argmax. Noise is a hash of two integers, so that any rank can compute any of it; that of a generator
with a state is a hash of the number of draws before."""

from __future__ import annotations

import numpy as np

from rooflang.ir.op import Op
from rooflang.ir.reference import topk
from rooflang.ir.reference.base import Array, Arrays, Fold, Reference, State, Where, define, spread


def _noise(keys: Array, ids: Array) -> Array:
    """−log(−log u) with u in (0, 1) from a hash of key and id (as in splitmix64, with wrap-around)."""
    with np.errstate(over="ignore"):
        bits = keys.astype(np.uint64)[..., None] * np.uint64(0x9E3779B97F4A7C15) + ids.astype(np.uint64)
        bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
    return np.asarray(-np.log(-np.log(uniform)))


def _best(op: Op, where: Where, noise: Array, logits: Array) -> State:
    x = op.operands[0]
    values, ids = topk.best(logits + noise, where.ids[x.dims[-1]], 1)
    return tuple(spread(a[..., 0], x.dims[:-1], op.output.dims) for a in (values, ids))


def _sample(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    x, keys = op.operands
    ordered = spread(operands[1], keys.dims, x.dims[:-1])
    return _best(op, where, _noise(ordered, where.ids[x.dims[-1]]), operands[0])


def _draw(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    shape = operands[0].shape
    draws = np.arange(int(np.prod(shape[:-1]))).reshape(shape[:-1])
    return (_best(op, where, _noise(draws, np.arange(shape[-1])), operands[0])[1],)


def _better(op: Op, a: State, b: State) -> State:
    values, ids = topk.merge(tuple(x[..., None] for x in a), tuple(x[..., None] for x in b), 1)
    return values[..., 0], ids[..., 0]


define(
    "sample",
    Reference(
        run=_sample,
        fold=Fold(
            combine=_better,
            finish=lambda op, state: state[1],
            dims=lambda op: (op.output.dims, op.output.dims),
        ),
    ),
)
define("stateful_sample", Reference(run=_draw))
