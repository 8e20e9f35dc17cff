"""Routing, dispatch and combine on dense arrays: a routed tensor has a row for every (token, expert), zero where the
expert was not chosen. The summary of a route has the share's candidates (the number that each is chosen by, its id, its
logit), its largest logit and the sum of e^(logit − it)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.kinds.moe import SCORES, expert_label
from rooflang.ir.op import Op
from rooflang.ir.reference import softmax, topk
from rooflang.ir.reference.base import (
    NO_ID,
    Array,
    Arrays,
    Reference,
    State,
    Summary,
    Where,
    define,
    plain,
    product,
    spread,
)
from rooflang.ir.reference.elementwise import sigmoid


def _tokens(op: Op) -> tuple[str, ...]:
    return tuple(d for d in op.operands[0].dims if d != expert_label(op))


def _summary(op: Op, where: Where, operands: Arrays) -> State:
    """The share's best experts, with global ids, and the statistics of its logits."""
    expert = expert_label(op)
    given = spread(operands[0], op.operands[0].dims, (*_tokens(op), expert))
    choice = given
    if len(operands) > 1:
        choice = (sigmoid(given) if op.attr("scores") == "sigmoid" else given) + operands[1]
    x = logits(given)
    top = np.max(x, -1, keepdims=True, initial=-np.inf)
    return *topk.best(choice, where.ids[expert], op.attr("top_k", 1), given), top, softmax.total(x, top)


def _merge(op: Op, a: State, b: State) -> State:
    return *topk.merge(a[:3], b[:3], op.attr("top_k", 1)), *softmax.merged(a[3:], b[3:])


def _route(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    _, ids, chosen, top, total = summary
    scores, there = op.attr("scores", SCORES[0]), ids != NO_ID
    if scores == "chosen":
        return (_gates(op, where, np.where(there, chosen, -np.inf), ids),)
    weights = sigmoid(chosen) if scores == "sigmoid" else exp(logits(chosen) - top) / total
    weights = weights * there
    if op.attr("renormalise"):
        weights = weights / weights.sum(-1, keepdims=True)
    return (_placed(op, where, weights, ids),)


def _gates(op: Op, where: Where, values: Array, ids: Array) -> Array:
    """Gates of this share's experts from the chosen logits (tokens, k) and their experts."""
    scores = logits(values)
    weights = exp(scores - scores.max(-1, keepdims=True))
    return _placed(op, where, weights / weights.sum(-1, keepdims=True), ids)


def _placed(op: Op, where: Where, weights: Array, ids: Array) -> Array:
    """Weights of the chosen (tokens, k) where their experts are, of those of this share."""
    expert = expert_label(op)
    placed = (weights[..., :, None] * (ids[..., :, None] == where.ids[expert])).sum(-2)
    return spread(placed, (*_tokens(op), expert), op.output.dims)


def _hash_route(op: Op, where: Where, operands: Arrays) -> Array:
    expert, tokens = expert_label(op), _tokens(op)
    table = operands[2].reshape(len(operands[2]), -1)
    ids = np.sort(table[spread(operands[1], op.operands[1].dims, tokens)], axis=-1)
    ids[..., 1:][ids[..., 1:] == ids[..., :-1]] = NO_ID  # an expert that the table names twice is one expert
    logits = spread(operands[0], op.operands[0].dims, (*tokens, expert))
    values = np.where(ids == NO_ID, -np.inf, np.take_along_axis(logits, ids, -1))
    return _gates(op, where, values, ids)


def _hash_ids(op: Op) -> Mapping[int, str]:
    return {1: op.operands[2].dims[0], 2: expert_label(op)}


def _dispatch(op: Op, where: Where, operands: Arrays) -> Array:
    x, gates = (spread(a, t.dims, op.output.dims) for a, t in zip(operands, op.operands, strict=True))
    return np.asarray(x * (gates != 0))


def _combine(op: Op, where: Where, operands: Arrays) -> Array:
    rows, gates = op.operands
    return product(operands[0], rows.dims, operands[1], gates.dims, op.output.dims)


define("route", Reference(run=_route, summary=Summary(of=_summary, merge=_merge)))
define(
    "hash_route",
    Reference(run=lambda op, where, summary, operands: (_hash_route(op, where, operands),), ids=_hash_ids),
)
define("dispatch", plain(_dispatch))
define("combine", plain(_combine))
