"""Attention with keys and values of their own: MHA, GQA (arXiv 2305.13245), MQA, causal or over a sliding window.

`grouped_attention` takes q (batch seq head dim; seq may be absent in decode), k (batch positions kv dim) and v (batch
positions kv value) to (batch seq head value). H heads share K key-value heads in runs of ⌈H/K⌉: head h reads h ÷ ⌈H/K⌉,
h being its number among *all* heads. Query i of S stands at position C − S + i of C. With `causal` it sees no later
position, with `window` only the last `window` ones up to its own: positions are global too.

Heads may be cut with their key-value heads (`kv`), or by themselves, and then every rank holds all of k and v.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.attention import LSE_BYTES
from rooflang.ir.kinds.rows import expect, expect_labels, expect_rank, par
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def labels(op: Op) -> tuple[str, str, str, str]:
    """Labels of positions, of heads, of key-value heads and of values."""
    return op.operands[1].dims[1], op.operands[0].dims[-2], op.operands[1].dims[2], op.operands[2].dims[3]


def _check(op: Op) -> None:
    expect(op, 3)
    q, k, v = op.operands
    expect_rank(op, 1, "batch", "positions", "key-value heads", "width")
    if len(q.dims) not in (3, 4) or q.dims[-1] != k.dims[3] or q.dims[0] != k.dims[0] or k.dims[2] in q.dims:
        raise GraphError(
            f"{op.name}: {q.name} has the dims {' '.join(q.dims)}", expected=f"{k.dims[0]} … heads {k.dims[3]}"
        )
    if len(v.dims) != 4 or v.dims[:3] != k.dims[:3] or v.dims[3] in (*q.dims, *k.dims):
        raise GraphError(
            f"{op.name}: {v.name} has the dims {' '.join(v.dims)}", expected=f"{' '.join(k.dims[:3])} values"
        )
    expect_labels(op, op.output.dims, (*q.dims[:-1], v.dims[3]), "the output")
    if op.attr("window", 0) < 0:
        raise GraphError(f"{op.name}: window={op.attr('window')}", expected="0 (no window) or more")


def _check_sizes(op: Op, sizes: Mapping[str, int]) -> None:
    positions, heads, shared, _ = labels(op)
    if sizes[shared] > sizes[heads]:
        raise GraphError(f"{op.name}: {sizes[shared]} key-value heads for {sizes[heads]} heads")
    if len(op.operands[0].dims) == 4 and sizes[op.operands[0].dims[1]] > sizes[positions]:
        raise GraphError(f"{op.name}: more queries than positions")


def _keys(op: Op, full: Sizes) -> Num:
    """Positions that a query attends, on average."""
    context = full[labels(op)[0]]
    queries = full[op.operands[0].dims[1]] if len(op.operands[0].dims) == 4 else 1
    seen = context - (queries - 1) / 2 if op.attr("causal") else context
    return min(seen, op.attr("window")) if op.attr("window") else seen


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """2 FLOPs per query, head and key for each element of a key and of a value."""
    context, _, _, value = labels(op)
    rows = math.prod(local[d] for d in op.operands[0].dims[:-1])
    keys = _keys(op, full) * (local[context] / full[context])
    return {op.peak: 2.0 * rows * keys * (full[op.operands[0].dims[-1]] + local[value])}


def _read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """Of k and v what some query sees."""
    if index == 0 or not op.attr("window"):
        return 1.0
    queries = full[op.operands[0].dims[1]] if len(op.operands[0].dims) == 4 else 1
    return min(1.0, (op.attr("window") + queries - 1) / full[labels(op)[0]])


def _cuts(op: Op) -> tuple[Cut, ...]:
    context, head, shared, _ = labels(op)
    rows = [par(op, d) for d in op.output.dims if d != head]
    by_head = Cut(kind=CutKind.PAR, dim=head, operands=(head, REPLICATED, REPLICATED), out=head, loops=(head,))
    by_group = Cut(
        kind=CutKind.PAR,
        dim=shared,
        operands=(head, shared, shared),
        out=head,
        loops=(head, shared),
        grouped=(head, shared),
    )
    fold = Cut(
        kind=CutKind.FOLD,
        dim=context,
        operands=(REPLICATED, context, context),
        out=PARTIAL,
        loops=(context,),
        combine="lse",
        partial_scale=1.0 + LSE_BYTES / op.attr("value_bytes", 256.0),
    )
    return (*rows, by_head, by_group, fold)


register(
    OpKind(
        name="grouped_attention",
        summary="softmax attention, heads in groups that share keys and values; operands: q, k, v",
        cuts=_cuts,
        flops=_flops,
        read_fraction=_read,
        attrs={"causal": (bool,), "window": (int,), "value_bytes": NUMBER},
        check=_check,
        check_sizes=_check_sizes,
    )
)
