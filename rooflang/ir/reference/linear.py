"""Linear attention with a fixed decay, position by position. The summary of a share of positions is, for every run of
consecutive ones, where it ends and the state that it alone would leave."""

from __future__ import annotations

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Reference, State, Summary, Where, define, plain
from rooflang.ir.reference.delta import runs


def _decay(slopes: Array) -> Array:
    """λ (head 1 1), to be multiplied with states (… head key value)."""
    return np.asarray(exp(logits(-slopes))[:, None, None])


def _step(state: Array, k: Array, v: Array, decay: Array) -> Array:
    return np.asarray(decay * state + np.einsum("bhk,bhv->bhkv", k, v))


def _read(q: Array, state: Array) -> Array:
    return np.asarray(np.einsum("bhk,bhkv->bhv", q, state))


def _update(op: Op, where: Where, operands: Arrays) -> Array:
    k, v, slopes, state = operands
    return _step(state, k, v, _decay(slopes))


def _positions(op: Op, where: Where) -> Array:
    return where.ids[op.operands[0].dims[1]]


def _states(op: Op, where: Where, operands: Arrays) -> State:
    """(last position, state) of every run of this share."""
    k, v, slopes = operands[-3:]
    decay, ids = _decay(slopes), _positions(op, where)
    batch, _, head, key = k.shape
    ends, states = [], []
    for run in runs(ids):
        state = np.zeros((batch, head, key, v.shape[-1]))
        for t in run:
            state = _step(state, k[:, t], v[:, t], decay)
        ends.append(ids[run[-1]])
        states.append(state)
    return np.array(ends, int), np.reshape(states, (len(ends), batch, head, key, v.shape[-1]))


def _merge(op: Op, a: State, b: State) -> State:
    order = np.argsort(np.concatenate([a[0], b[0]]), kind="stable")
    return tuple(np.concatenate([x, y])[order] for x, y in zip(a, b, strict=True))


def _before(summary: State, position: int, decay: Array) -> Array:
    """The state that everything before a position leaves."""
    state = np.zeros(summary[1].shape[1:])
    for end, left in zip(*summary, strict=True):
        if end < position:
            state = state + decay ** int(position - 1 - end) * left
    return state


def _scan(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    q, k, v, slopes = operands
    decay, ids = _decay(slopes), _positions(op, where)
    out = np.zeros(v.shape, v.dtype)
    for run in runs(ids):
        state = _before(summary, ids[run[0]], decay)
        for t in run:
            state = _step(state, k[:, t], v[:, t], decay)
            out[:, t] = _read(q[:, t], state)
    return (out,)


def _final(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    return (_before(summary, where.sizes[op.operands[0].dims[1]], _decay(operands[-1])),)


_EXCHANGE = Summary(of=_states, merge=_merge)
define("linear_update", plain(_update))
define("linear_read", plain(lambda op, where, operands: _read(*operands)))
define("linear_scan", Reference(run=_scan, summary=_EXCHANGE))
define("linear_final", Reference(run=_final, summary=_EXCHANGE))
