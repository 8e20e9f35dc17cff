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
from rooflang.ir.reference import softmax, topk
from rooflang.ir.reference.base import Array, Arrays, Fold, Reference, State, Summary, Where, define, product, spread


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
    index, selection, context = (part_index(op, part) for part in ("index", "selection", "context"))
    if context is None:
        return None
    if index is not None:
        ids, tokens = summary[1], op.operands[index].dims[:1]
    elif selection is not None:
        ids, tokens = operands[selection], op.operands[selection].dims[:-1]
    else:
        return None
    entries = op.operands[context].dims[1]
    return spread(topk.chosen(ids, where.ids[entries]), (*tokens, entries), (*softmax.rows(op), entries))


def _run(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    q, rows, width = op.operands[0], softmax.rows(op), op.operands[0].dims[-1]
    keyed = []
    for part in ("window", "context"):
        index = part_index(op, part)
        if index is not None:
            batch, keys, _ = op.operands[index].dims
            dims = (batch, keys, width)
            score = product(operands[0], q.dims, operands[index], dims, (*rows, keys)) / np.sqrt(where.sizes[width])
            mask = _attended(op, where, summary, operands) if part == "context" else None
            keyed.append((score if mask is None else np.where(mask, score, -np.inf), operands[index], dims))
    return softmax.attend(op, keyed)


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
        fold=Fold(combine=softmax.combine, finish=softmax.finish, dims=softmax.dims),
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
