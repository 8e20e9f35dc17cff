"""Attention over a window and a compressed context, dense or sparse, and the indexer that picks the sparse entries.

`attention` takes q (batch seq … head_dim) and then, in the order of its attribute `parts`, caches that each have one context
label: `window` (always read whole), `context` (compressed entries, of which `select` are attended if it is not 0), `index` (scored
inside this operator when `index_heads` is set) and `selection` (the ids chosen by an `index_select` operator).
Query heads share one KV head (MQA, as in absorbed MLA), so a cut of heads leaves the caches whole on every rank.
`value_bytes` is the size of one output row (head_dim elements), beside which a partial row carries its statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import expect, par, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

#: Bytes of a top-k candidate: an FP32 score and an INT32 id.
CANDIDATE_BYTES = 8.0
#: Bytes of log-sum-exp statistics per row and head: an FP32 maximum and an FP32 sum.
LSE_BYTES = 8.0


def _part(op: Op, part: str) -> int | None:
    """Index of the operand that plays this part, or None."""
    parts = op.attr("parts", ())
    return 1 + parts.index(part) if part in parts else None


def _context_label(op: Op, part: str) -> str:
    """The one label of this part that neither q nor the value dim has."""
    index = _part(op, part)
    assert index is not None
    return op.operands[index].dims[1]


def _check(op: Op) -> None:
    parts = op.attr("parts", ())
    expect(op, 1 + len(parts))
    if not parts or not set(parts) <= {"window", "context", "index", "selection"}:
        raise GraphError(f"{op.name}: attention needs parts=(…)", expected="of window, context, index, selection")
    if set(op.operands[0].dims) != set(op.output.dims):
        raise GraphError(f"{op.name}: q and the output of attention have the same dims")
    for part in ("window", "context", "index"):
        index = _part(op, part)
        if index is not None and len(op.operands[index].dims) != 3:
            raise GraphError(f"{op.name}: {part} has the dims batch, positions, width")


def _selected(op: Op, local: Sizes, full: Sizes) -> Num:
    """Keys attended per query on this rank."""
    keys: Num = local[_context_label(op, "window")] if _part(op, "window") else 0
    if _part(op, "context"):
        label = _context_label(op, "context")
        chosen = min(op.attr("select"), full[label]) if op.attr("select") else full[label] * op.attr("causal", 1.0)
        keys = keys + chosen * (local[label] / full[label])
    return keys


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Scores and values: 4 FLOPs per query, head, key and value dim. An indexer scored inside: a dot product of width d and
    3 more operations (scale, ReLU, sum) per query, index head and key, at its own rate."""
    rows = math.prod(local[d] for d in op.output.dims)
    flops: dict[str, Num] = {op.peak: 4.0 * rows * _selected(op, local, full)}
    index = _part(op, "index")
    if index is not None:
        heads, label, width = op.attr("index_heads"), *op.operands[index].dims[1:]
        queries = math.prod(local[d] for d in ("batch", "seq") if d in op.output.dims)
        per_key = 2.0 * heads * full[width] + 3.0 * heads
        flops["fp4"] = flops.get("fp4", 0.0) + per_key * queries * local[label] * op.attr("index_causal", 1.0)
    return flops


def _read_fraction(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    if index != _part(op, "context") or not op.attr("select"):
        return 1.0
    label = _context_label(op, "context")
    chosen = min(op.attr("select"), full[label]) / full[label]
    return min(1.0, local.get("seq", 1) * chosen)


def _cuts(op: Op) -> tuple[Cut, ...]:
    q = op.operands[0]
    width = q.dims[-1]
    rows = pars(op, [d for d in op.output.dims if d != width])
    cut_at = tuple(
        REPLICATED if i == 0 or op.attr("parts")[i - 1] == "selection" else t.dims[1] for i, t in enumerate(op.operands)
    )
    labels = tuple(dict.fromkeys(d for d in cut_at if d != REPLICATED))
    merge = "index" in op.attr("parts")
    fold = Cut(
        kind=CutKind.FOLD,
        dim=labels[-1],
        operands=cut_at,
        out=PARTIAL,
        loops=labels,
        combine="lse",
        stat_rows=tuple(d for d in ("batch", "seq") if d in q.dims) if merge else (),
        stat_bytes=CANDIDATE_BYTES * op.attr("select", 0) if merge else 0.0,
        partial_scale=1.0 + LSE_BYTES / op.attr("value_bytes", 1024.0),
    )
    return (*rows, fold)


def _index_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    q, keys = op.operands[0], op.operands[2]
    heads, width = q.dims[-2:]
    queries = math.prod(local[d] for d in ("batch", "seq") if d in q.dims)
    per_key = 2.0 * local[heads] * full[width] + 3.0 * local[heads]
    return {op.peak: per_key * queries * local[keys.dims[1]] * op.attr("causal", 1.0)}


def _index_cuts(op: Op) -> tuple[Cut, ...]:
    keys = op.operands[2]
    label = keys.dims[1]
    fold = Cut(
        kind=CutKind.FOLD,
        dim=label,
        operands=(REPLICATED, REPLICATED, label),
        out=PARTIAL,
        loops=(label,),
        combine="topk",
        partial_scale=2.0,  # a score beside every id
    )
    return (*(par(op, d) for d in op.output.dims[:-1]), fold)


register(
    OpKind(
        name="attention",
        summary="softmax attention over window and context; context shards merge by log-sum-exp",
        cuts=_cuts,
        flops=_flops,
        read_fraction=_read_fraction,
        check=_check,
    )
)
register(
    OpKind(
        name="index_select",
        summary="ids of the top-k context entries by indexer score; operands: queries, head weights, index keys",
        cuts=_index_cuts,
        flops=_index_flops,
        check=lambda op: expect(op, 3),
    )
)
