"""Latent attention. A partial result is (m, l, o) as of `attention`: the largest score of each query and head, the sum
of e^(score − m), and that sum weighted by the values; no entry at all is (−∞, 0, 0)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rooflang.ir.op import Op
from rooflang.ir.reference import softmax, topk
from rooflang.ir.reference.base import Array, Arrays, Fold, Reference, State, Where, define, plain, product, spread
from rooflang.ir.reference.norm import EPSILON


def _norm(op: Op, where: Where, operands: Arrays) -> Array:
    x, gain = op.operands
    count = where.sizes[gain.dims[0]]
    first, rest = operands[0][..., :count], operands[0][..., count:]
    mean = np.square(first).sum(-1, keepdims=True) / first.shape[-1]
    normed = first / np.sqrt(mean + EPSILON) * operands[1]
    return spread(np.concatenate([normed, rest], -1), x.dims, op.output.dims)


def _absorb(op: Op, where: Where, operands: Arrays) -> Array:
    q, weight = op.operands
    nope = weight.dims[1]
    unrotated = operands[0][..., : where.sizes[nope]]
    return product(unrotated, (*q.dims[:-1], nope), operands[1], weight.dims, op.output.dims)


def _scores(op: Op, where: Where, operands: Arrays) -> Array:
    """Scores of this share's entries, over queries, heads and entries; −∞ where an entry is not attended."""
    absorbed, q, entries = op.operands[:3]
    batch, positions, _ = entries.dims
    rank, rows = where.sizes[absorbed.dims[-1]], softmax.rows(op)
    rotary = where.sizes[entries.dims[2]] - rank
    latents, keys = operands[2][..., :rank], operands[2][..., rank:]
    turned = operands[1][..., operands[1].shape[-1] - rotary :]
    target, narrow = (*rows, positions), (batch, positions, "")
    score = product(operands[0], absorbed.dims, latents, (batch, positions, absorbed.dims[-1]), target)
    score = score + product(turned, (*q.dims[:-1], ""), keys, narrow, target)
    score = score / np.sqrt(where.sizes[q.dims[-1]])
    return np.where(_seen(op, where, operands), score, -np.inf)


def _seen(op: Op, where: Where, operands: Arrays) -> Array:
    """Which of this share's entries are attended, over queries, heads and entries."""
    positions, target = op.operands[2].dims[1], (*softmax.rows(op), op.operands[2].dims[1])
    mask = np.ones((1,) * len(target), bool)
    if op.attr("causal"):
        reach = where.ids["seq"][:, None] * where.sizes[positions]
        early = where.ids[positions] * where.sizes["seq"] <= reach
        mask = mask & spread(early, ("seq", positions), target)
    if op.attr("select"):
        chosen = topk.chosen(operands[3], where.ids[positions])
        mask = mask & spread(chosen, (*op.operands[3].dims[:-1], positions), target)
    return mask


def _run(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    (batch, positions, _), rank = op.operands[2].dims, op.operands[0].dims[-1]
    values = operands[2][..., : where.sizes[rank]]
    return softmax.attend(op, [(_scores(op, where, operands), values, (batch, positions, rank))])


def _ids(op: Op) -> Mapping[int, str]:
    return {3: op.operands[2].dims[1]} if op.attr("select") else {}


define("latent_norm", plain(_norm))
define("absorb_query", plain(_absorb))
define(
    "latent_attention",
    Reference(run=_run, fold=Fold(combine=softmax.combine, finish=softmax.finish, dims=softmax.dims), ids=_ids),
)
