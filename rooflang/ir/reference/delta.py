"""The gated delta rule, position by position. The summary of a share of positions is its affine maps S ← A·S + B, one
for every run of consecutive positions, with where each begins."""

from __future__ import annotations

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Reference, State, Summary, Where, define, plain
from rooflang.ir.reference.elementwise import sigmoid, softplus

#: Keeps a key of zeros finite.
_EPSILON = 1e-6

#: log α where the decay gate is fully open, `gate_lower_bound` of Kimi K3's config.
FLOOR = -5.0


def _unit(x: Array) -> Array:
    return np.asarray(x / np.sqrt(np.square(x).sum(-1, keepdims=True) + _EPSILON))


def _query(q: Array) -> Array:
    return np.asarray(_unit(q) / np.sqrt(q.shape[-1]))


def _log_decay(op: Op, decay: Array, rate: Array, shift: Array) -> Array:
    """log α (… head key) of decay logits; (… head 1) where a head has one for all channels."""
    scale = exp(logits(rate))
    if shift.ndim == 1:
        decay, shift = decay[..., None], shift[..., None]
    if op.attr("gate") == "softplus":
        return np.asarray(-scale[..., None] * softplus(decay + shift))
    return np.asarray(op.attr("floor", FLOOR) * sigmoid(scale[..., None] * (decay + shift)))


def _step(state: Array, k: Array, v: Array | None, log_decay: Array, beta: Array) -> Array:
    """The state (batch head key …) after one position; without values nothing is added."""
    k, beta = _unit(k), sigmoid(beta)[..., None]
    state = exp(logits(log_decay))[..., None] * state
    answer = np.einsum("bhk,bhkv->bhv", k, state)
    error = (0.0 if v is None else v) - answer
    return np.asarray(state + np.einsum("bhk,bhv->bhkv", k, beta * error))


def _update(op: Op, where: Where, operands: Arrays) -> Array:
    k, v, decay, beta, rate, shift, state = operands
    return _step(state, k, v, _log_decay(op, decay, rate, shift), beta)


def _read(op: Op, where: Where, operands: Arrays) -> Array:
    return np.asarray(np.einsum("bhk,bhkv->bhv", _query(operands[0]), operands[1]))


def runs(ids: Array) -> list[Array]:
    """Local positions of each run of consecutive indices."""
    return [run for run in np.split(np.arange(len(ids)), np.flatnonzero(np.diff(ids) > 1) + 1) if len(run)]


def _maps(op: Op, where: Where, operands: Arrays) -> State:
    """(first position, A, B) of every run of this share."""
    k, v, decay, beta, rate, shift = operands[-6:]
    decay = _log_decay(op, decay, rate, shift)
    ids = where.ids[op.operands[0].dims[1]]
    batch, _, head, key = k.shape
    starts, products, sums = [], [], []
    for run in runs(ids):
        turn = np.broadcast_to(np.eye(key), (batch, head, key, key))
        added = np.zeros((batch, head, key, v.shape[-1]))
        for t in run:
            turn = _step(turn, k[:, t], None, decay[:, t], beta[:, t])
            added = _step(added, k[:, t], v[:, t], decay[:, t], beta[:, t])
        starts.append(ids[run[0]])
        products.append(turn)
        sums.append(added)
    shape = (len(starts), batch, head, key)
    return (
        np.array(starts, int),
        np.reshape(products, (*shape, key)),
        np.reshape(sums, (*shape, v.shape[-1])),
    )


def _merge(op: Op, a: State, b: State) -> State:
    order = np.argsort(np.concatenate([a[0], b[0]]), kind="stable")
    return tuple(np.concatenate([x, y])[order] for x, y in zip(a, b, strict=True))


def _before(maps: State, position: int) -> Array:
    """The state that the maps of everything before a position lead to."""
    state = np.zeros(maps[2].shape[1:])
    for start, turn, added in zip(*maps, strict=True):
        if start < position:
            state = turn @ state + added
    return state


def _scan(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    q, k, v, decay, beta, rate, shift = operands
    decay = _log_decay(op, decay, rate, shift)
    ids = where.ids[op.operands[0].dims[1]]
    out = np.zeros(v.shape, v.dtype)
    for run in runs(ids):
        state = _before(summary, ids[run[0]])
        for t in run:
            state = _step(state, k[:, t], v[:, t], decay[:, t], beta[:, t])
            out[:, t] = np.einsum("bhk,bhkv->bhv", _query(q[:, t]), state)
    return (out,)


def _final(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    return (_before(summary, where.sizes[op.operands[0].dims[1]]),)


_EXCHANGE = Summary(of=_maps, merge=_merge)
define("delta_update", plain(_update))
define("delta_read", plain(_read))
define("delta_scan", Reference(run=_scan, summary=_EXCHANGE))
define("delta_final", Reference(run=_final, summary=_EXCHANGE))
