"""Attention with keys and values of their own: MHA, GQA (arXiv 2305.13245), MQA, causal or over a sliding window.

`grouped_attention` takes q (batch seq head dim; seq may be absent in decode), k (batch positions kv dim) and v (batch
positions kv value) to (batch seq head value). H heads share K key-value heads in runs of ⌈H/K⌉: head h reads h ÷ ⌈H/K⌉,
h being its number among *all* heads. Query i of S stands at position C − S + i of C. With `causal` it sees no later
position, with `window` only the last `window` ones up to its own, with `chunk` those of its own run of `chunk`
positions (images of one size, one after the other, see nothing of each other): positions are global too.

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
    expect(op, 4 if op.attr("sinks") else 3)
    q, k, v = op.operands[:3]
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
    for sinks in op.operands[3:]:
        expect_labels(op, sinks.dims, q.dims[-2:-1], sinks.name)
    for reach in ("window", "chunk"):
        if op.attr(reach, 0) < 0:
            raise GraphError(f"{op.name}: {reach}={op.attr(reach)}", expected=f"0 (no {reach}) or more")
    if op.attr("soft_cap", 1.0) <= 0:
        raise GraphError(f"{op.name}: soft_cap={op.attr('soft_cap')}", expected="a number above 0")


def _check_sizes(op: Op, sizes: Mapping[str, int]) -> None:
    positions, heads, shared, _ = labels(op)
    if sizes[shared] > sizes[heads]:
        raise GraphError(f"{op.name}: {sizes[shared]} key-value heads for {sizes[heads]} heads")
    if len(op.operands[0].dims) == 4 and sizes[op.operands[0].dims[1]] > sizes[positions]:
        raise GraphError(f"{op.name}: more queries than positions")


def _keys(op: Op, full: Sizes) -> Num:
    """Positions that a query attends, on average over the queries, the last ones of the context."""
    last = full[labels(op)[0]]
    if not op.attr("causal"):
        return min(last, op.attr("window") or last, op.attr("chunk") or last)
    first = last - (full[op.operands[0].dims[1]] if len(op.operands[0].dims) == 4 else 1) + 1
    if op.attr("chunk"):
        # A chunk of H is a ramp from 1 to H; what stands in an unfinished one is taken for as much.
        return min((first + last) / 2, (op.attr("chunk") + 1) / 2 if first < last else op.attr("chunk"))
    most = op.attr("window") or last
    ramp = max(0, min(most, last + 1) - first)  # queries that see all there is so far, and less than a window
    return (ramp * (2 * first + ramp - 1) / 2 + (last - first + 1 - ramp) * most) / (last - first + 1)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """2 FLOPs per query, head and key for each element of a key and of a value; 3 for a squashed score."""
    context, _, _, value = labels(op)
    rows = math.prod(local[d] for d in op.operands[0].dims[:-1])
    keys = _keys(op, full) * (local[context] / full[context])
    capped = 3.0 if op.attr("soft_cap") else 0.0
    return {op.peak: rows * keys * (2.0 * (full[op.operands[0].dims[-1]] + local[value]) + capped)}


def _read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """Of k and v what some query of this rank sees."""
    reach = op.attr("window") or op.attr("chunk")
    if index not in (1, 2) or not reach:
        return 1.0
    queries = local[op.operands[0].dims[1]] if len(op.operands[0].dims) == 4 else 1
    return min(1.0, (reach + queries - 1) / full[labels(op)[0]])


def _cuts(op: Op) -> tuple[Cut, ...]:
    context, head, shared, _ = labels(op)
    rows = [par(op, d) for d in op.output.dims if d != head]
    own = (head,) * len(op.operands[3:])  # sinks are cut with the heads
    whole = (REPLICATED,) * len(op.operands[3:])
    by_head = Cut(kind=CutKind.PAR, dim=head, operands=(head, REPLICATED, REPLICATED, *own), out=head, loops=(head,))
    by_group = Cut(
        kind=CutKind.PAR,
        dim=shared,
        operands=(head, shared, shared, *own),
        out=head,
        loops=(head, shared),
        grouped=(head, shared),
    )
    fold = Cut(
        kind=CutKind.FOLD,
        dim=context,
        operands=(REPLICATED, context, context, *whole),
        out=PARTIAL,
        loops=(context,),
        combine="lse",
        partial_scale=1.0 + LSE_BYTES / op.attr("value_bytes", 256.0),
    )
    return (*rows, by_head, by_group, fold)


register(
    OpKind(
        name="grouped_attention",
        summary="softmax attention, heads in groups that share keys and values; operands: q, k, v, and sinks",
        cuts=_cuts,
        flops=_flops,
        read_fraction=_read,
        attrs={
            "causal": (bool,),
            "window": (int,),
            "chunk": (int,),
            "sinks": (bool,),
            "soft_cap": NUMBER,
            "value_bytes": NUMBER,
        },
        check=_check,
        check_sizes=_check_sizes,
    )
)
