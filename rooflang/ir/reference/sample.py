"""Gumbel noise and argmax. Noise is a hash of two integers, so that any rank can compute any of it; that of a generator
with a state is a hash of the number of draws before."""

from __future__ import annotations

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.kinds.sample import candidates, restricted
from rooflang.ir.op import Op
from rooflang.ir.reference import topk
from rooflang.ir.reference.base import NO_ID, Array, Arrays, Fold, Reference, State, Where, define, spread


def _noise(keys: Array, ids: Array) -> Array:
    """−log(−log u) with u in (0, 1) from a hash of key and id (as in splitmix64, with wrap-around)."""
    with np.errstate(over="ignore"):
        bits = keys.astype(np.uint64)[..., None] * np.uint64(0x9E3779B97F4A7C15) + ids.astype(np.uint64)
        bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
    return np.asarray(-np.log(-np.log(uniform)))


def _sample(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    """Candidates of this share: (what they are ranked by, ids, logits with noise)."""
    x, keys = op.operands
    vocab = x.dims[-1]
    scores = operands[0] / op.attr("temperature", 1.0)
    noisy = scores + _noise(spread(operands[1], keys.dims, x.dims[:-1]), where.ids[vocab])
    order = scores if restricted(op) else noisy
    ranked = topk.best(order, where.ids[vocab], candidates(op, where.sizes[vocab]), noisy)
    return tuple(_ordered(op, a) for a in ranked)


def _ordered(op: Op, array: Array) -> Array:
    """Candidates (requests, "") in the order of the output."""
    return spread(array, (*op.operands[0].dims[:-1], ""), (*op.output.dims, ""))


def _chosen(op: Op, state: State) -> Array:
    """The best of the candidates by their noise, of those in the nucleus."""
    scores, ids, noisy = state
    top_p = op.attr("top_p", 1.0)
    if top_p < 1:
        x = logits(scores)
        weights = exp(x - x[..., :1])
        before = np.cumsum(weights, -1) - weights
        noisy = np.where(before < top_p * weights.sum(-1, keepdims=True), noisy, -np.inf)
    return topk.best(np.where(ids == NO_ID, -np.inf, noisy), ids, 1)[1][..., 0]


def _top(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    vocab, chosen = op.operands[0].dims[-1], op.output.dims[-1]
    return tuple(
        spread(a, (*op.operands[0].dims[:-1], ""), (*op.output.dims[:-1], ""))
        for a in topk.best(operands[0], where.ids[vocab], where.sizes[chosen])
    )


def _draw(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    shape = operands[0].shape
    draws = np.arange(int(np.prod(shape[:-1]))).reshape(shape[:-1])
    noisy = operands[0] + _noise(draws, np.arange(shape[-1]))
    _, ids = topk.best(noisy, where.ids[op.operands[0].dims[-1]], 1)
    return (spread(ids[..., 0], op.operands[0].dims[:-1], op.output.dims),)


def _merge(op: Op, a: State, b: State) -> State:
    return topk.merge(a, b, a[0].shape[-1])


define(
    "sample",
    Reference(run=_sample, fold=Fold(combine=_merge, finish=_chosen, dims=lambda op: ((*op.output.dims, ""),) * 3)),
)
define(
    "top_k",
    Reference(
        run=_top,
        fold=Fold(
            combine=_merge,
            finish=lambda op, state: state[1],
            dims=lambda op: ((*op.output.dims[:-1], ""),) * 2,
        ),
    ),
)
define("stateful_sample", Reference(run=_draw))
