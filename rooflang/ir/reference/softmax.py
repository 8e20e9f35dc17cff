"""Softmax over a label, and softmax attention in shares: the states that kinds of attention fold.

A state is (m, l, o): the largest score of each query and head, the sum of e^(score − m), and that sum weighted by the
values. No key at all is (−∞, 0, 0), and its attention is 0. `rows` are the labels of queries and heads; o has the dims
of the output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Reference, State, Summary, Where, define, product, spread


def rows(op: Op) -> tuple[str, ...]:
    """Labels of queries and heads: those of the first operand, the queries, without their width."""
    return op.operands[0].dims[:-1]


def attend(op: Op, keyed: Sequence[tuple[Array, Array, tuple[str, ...]]]) -> State:
    """The state of some keys, each group given as scores (rows, keys; −∞ where masked), values, and dims of the values,
    (batch, keys, width)."""
    scored = [(logits(score), values, dims) for score, values, dims in keyed]
    top = np.max(np.concatenate([score for score, _, _ in scored], -1), -1, initial=-np.inf)
    total, mixed = np.zeros_like(top), np.zeros((1,) * len(op.output.dims))
    for score, values, dims in scored:
        weights = exp(score - _finite(top)[..., None])
        total = total + weights.sum(-1)
        mixed = mixed + product(weights, (*rows(op), dims[1]), values, dims, op.output.dims)
    return top, total, mixed


def _finite(top: Array) -> Array:
    """A row without keys has no largest score; any number will do in its place."""
    return np.where(top > -np.inf, top, 0.0)


def combine(op: Op, a: State, b: State) -> State:
    """The state of two shares of the keys together."""
    top = np.maximum(a[0], b[0])
    left, right = (exp(state[0] - _finite(top)) for state in (a, b))
    wide_left, wide_right = (spread(w, rows(op), op.output.dims) for w in (left, right))
    return top, a[1] * left + b[1] * right, a[2] * wide_left + b[2] * wide_right


def finish(op: Op, state: State) -> Array:
    """The attention of all keys from their state."""
    total = spread(state[1], rows(op), op.output.dims)
    return np.asarray(state[2] / np.where(total > 0, total, 1.0))


def dims(op: Op) -> tuple[tuple[str, ...], ...]:
    """Labels of m, l and o."""
    return (rows(op), rows(op), op.output.dims)


# -- softmax over a label ---------------------------------------------------------------------------------------------


def _axis(op: Op) -> int:
    return op.operands[0].dims.index(op.attr("over"))


def total(x: Array, top: Array, axis: int = -1) -> Array:
    """The sum of e^(x − top) along an axis, kept."""
    return np.asarray(exp(x - _finite(top)).sum(axis, keepdims=True))


def merged(a: State, b: State) -> State:
    """(largest element, sum of e^(x − it)) of two shares together."""
    top = np.maximum(a[0], b[0])
    left, right = (exp(state[0] - _finite(top)) for state in (a, b))
    return top, a[1] * left + b[1] * right


def _statistics(op: Op, where: Where, operands: Arrays) -> State:
    x = logits(operands[0])
    top = np.max(x, _axis(op), keepdims=True, initial=-np.inf)
    return top, total(x, top, _axis(op))


def _softmax(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    top, below = summary
    return (spread(exp(logits(operands[0]) - top) / below, op.operands[0].dims, op.output.dims),)


define("softmax", Reference(run=_softmax, summary=Summary(of=_statistics, merge=lambda op, a, b: merged(a, b))))
