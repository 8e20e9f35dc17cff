"""Softmax attention over a window and a context, dense or chosen, and the indexer that chooses.

A partial result is (m, l, o): the largest score of each query and head, the sum of e^(score − m), and that sum weighted
by the values. No key at all is (−∞, 0, 0), and its attention is 0.

An index that is scored inside the operator has no query of its own in the graph. It is scored with a query of ones: the
score of an entry is the sum of its key.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rooflang.ir.kinds.attention import part_index
from rooflang.ir.op import Op
from rooflang.ir.reference import topk
from rooflang.ir.reference.base import Array, Arrays, Fold, Reference, State, Summary, Where, define, product, spread


def _rows(op: Op) -> tuple[str, ...]:
    """Labels of queries and heads."""
    return op.operands[0].dims[:-1]


def _index(op: Op, where: Where, operands: Arrays) -> State:
    """Best candidates by an index that is scored inside; nothing without one."""
    index = part_index(op, "index")
    if index is None:
        return ()
    label = op.operands[index].dims[1]
    return topk.best(operands[index].sum(-1), where.ids[label], op.attr("select"))


def _merge(op: Op, a: State, b: State) -> State:
    return topk.merge(a, b, op.attr("select")) if a else ()


def _attended(op: Op, where: Where, summary: State, operands: Arrays) -> Array | None:
    """Which context entries of this share are attended, over rows and entries; None: all of them."""
    at, context = part_index(op, "selection"), part_index(op, "context")
    if not op.attr("select") or context is None:
        return None
    entries = op.operands[context].dims[1]
    if at is None:
        mask, tokens = topk.chosen(summary[1], where.ids[entries]), op.operands[context].dims[:1]
    else:
        mask, tokens = topk.chosen(operands[at], where.ids[entries]), op.operands[at].dims[:-1]
    return spread(mask, (*tokens, entries), (*_rows(op), entries))


def _run(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    q, rows, width = op.operands[0], _rows(op), op.operands[0].dims[-1]
    keyed = []
    for part in ("window", "context"):
        index = part_index(op, part)
        if index is not None:
            batch, keys, _ = op.operands[index].dims
            dims = (batch, keys, width)
            score = product(operands[0], q.dims, operands[index], dims, (*rows, keys)) / np.sqrt(where.sizes[width])
            mask = _attended(op, where, summary, operands) if part == "context" else None
            keyed.append((score if mask is None else np.where(mask, score, -np.inf), operands[index], dims))
    top = np.max(np.concatenate([score for score, _, _ in keyed], -1), -1, initial=-np.inf)
    total, mixed = np.zeros_like(top), np.zeros((1,) * len(op.output.dims))
    for score, values, dims in keyed:
        weights = np.exp(score - _finite(top)[..., None])
        total = total + weights.sum(-1)
        mixed = mixed + product(weights, (*rows, dims[1]), values, dims, op.output.dims)
    return top, total, mixed


def _finite(top: Array) -> Array:
    """A row without keys has no largest score; any number will do in its place."""
    return np.where(np.isfinite(top), top, 0.0)


def _combine(op: Op, a: State, b: State) -> State:
    top = np.maximum(a[0], b[0])
    left, right = (np.exp(state[0] - _finite(top)) for state in (a, b))
    wide_left, wide_right = (spread(w, _rows(op), op.output.dims) for w in (left, right))
    return top, a[1] * left + b[1] * right, a[2] * wide_left + b[2] * wide_right


def _finish(op: Op, state: State) -> Array:
    total = spread(state[1], _rows(op), op.output.dims)
    return np.asarray(state[2] / np.where(total > 0, total, 1.0))


def _dims(op: Op) -> tuple[tuple[str, ...], ...]:
    return (_rows(op), _rows(op), op.output.dims)


def _chosen_ids(op: Op) -> Mapping[int, str]:
    at, context = part_index(op, "selection"), part_index(op, "context")
    return {} if at is None or context is None else {at: op.operands[context].dims[1]}


def _select(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    """Σ over heads of weight · relu(query · key), the best entries of this share by it."""
    q, weights, keys = op.operands
    entries, rows = keys.dims[1], op.output.dims[:-1]
    heads = (*q.dims[:-1], entries)
    dots = np.maximum(product(operands[0], q.dims, operands[2], keys.dims, heads), 0.0)
    scores = product(dots, heads, operands[1], weights.dims, (*rows, entries))
    return topk.best(scores, where.ids[entries], where.sizes[op.output.dims[-1]])


def _select_dims(op: Op) -> tuple[tuple[str, ...], ...]:
    candidates = (*op.output.dims[:-1], "")
    return (candidates, candidates)


define(
    "attention",
    Reference(
        run=_run,
        summary=Summary(of=_index, merge=_merge),
        fold=Fold(combine=_combine, finish=_finish, dims=_dims),
        ids=_chosen_ids,
    ),
)
define(
    "index_select",
    Reference(
        run=_select,
        fold=Fold(
            combine=lambda op, a, b: topk.merge(a, b, a[0].shape[-1]),
            finish=lambda op, state: state[1],
            dims=_select_dims,
        ),
    ),
)
