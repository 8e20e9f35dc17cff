"""Attention over a window and a compressed context, dense or sparse, and the indexer that picks the sparse entries.

`attention` takes q (batch seq … head_dim) and then, in the order of its attribute `parts`, operands that each have one
label of positions or entries:

- `window` (batch, positions, width): always attended whole;
- `context` (batch, entries, width): all entries, or `select` of them;
- `selection` (batch, seq, chosen): the ids of the chosen entries, from an `index_select` operator;
- `index` (batch, entries, width): the entries' index keys, scored inside this operator by `index_heads` heads.

Query heads share one KV head whose keys, as wide as q, are its values too (MQA, as in absorbed MLA), so a cut of heads
leaves the caches whole on every rank. Every key present is attended: the share that a causal mask leaves, `causal` and
`index_causal`, is a matter of cost. `value_bytes` is the size of one output row (head_dim elements), beside which a
partial row carries its statistics. Tokens are counted by the labels `batch` and `seq` or `draft`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import POSITIONS, expect, expect_labels, expect_rank, par, pars, positions
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

#: Bytes of a top-k candidate: an FP32 score and an INT32 id.
CANDIDATE_BYTES = 8.0
#: Bytes of log-sum-exp statistics per row and head: an FP32 maximum and an FP32 sum.
LSE_BYTES = 8.0


PARTS = ("window", "context", "index", "selection")


def part_index(op: Op, part: str) -> int | None:
    """Index of the operand that plays this part, or None."""
    parts = op.attr("parts", ())
    return 1 + parts.index(part) if part in parts else None


def _context_label(op: Op, part: str) -> str:
    """The one label of this part that neither q nor the value dim has."""
    index = part_index(op, part)
    assert index is not None
    return op.operands[index].dims[1]


def _check(op: Op) -> None:
    parts = op.attr("parts", ())
    if not set(parts) & {"window", "context"} or not set(parts) <= set(PARTS) or len(set(parts)) < len(parts):
        raise GraphError(f"{op.name}: parts={parts}", expected=f"some of {', '.join(PARTS)}; window or context")
    expect(op, 1 + len(parts))
    q = op.operands[0]
    expect_labels(op, q.dims, op.output.dims, q.name)
    for part in parts:
        _check_part(op, part)
    positions = {op.operands[1 + i].dims[1] for i, part in enumerate(parts) if part != "selection"}
    others = {label for tensor in op.operands[1:] for label in tensor.dims[-1:]}
    if positions & others:
        raise GraphError(f"{op.name}: {' '.join(positions & others)} counts positions and something else")
    _check_choice(op)


def _check_part(op: Op, part: str) -> None:
    index = part_index(op, part)
    assert index is not None
    q, tensor = op.operands[0], op.operands[index]
    if part == "selection":
        good = len(tensor.dims) > 1 and set(tensor.dims[:-1]) <= set(q.dims[:-1]) and tensor.dims[-1] not in q.dims
        expected = "dims of q, then the chosen entries"
    else:
        expect_rank(op, index, "batch", "positions", "width")
        batch, positions, width = tensor.dims
        good = batch in q.dims[:-1] and positions not in q.dims and width not in q.dims[:-1]
        expected = f"{q.dims[0]}, positions, width"
    if not good:
        raise GraphError(f"{op.name}: {part} has the dims {' '.join(tensor.dims)}", expected=expected)


def _check_width(op: Op, sizes: Mapping[str, int]) -> None:
    q = op.operands[0]
    for part in ("window", "context"):
        index = part_index(op, part)
        if index is not None and sizes[op.operands[index].dims[2]] != sizes[q.dims[-1]]:
            raise GraphError(
                f"{op.name}: entries of {part} have the width {sizes[op.operands[index].dims[2]]}",
                expected=f"{sizes[q.dims[-1]]}, the width of {q.name}",
            )


def _check_choice(op: Op) -> None:
    """Either nothing is chosen, or by an operand that says what, or by an index."""
    parts = op.attr("parts")
    choosers = {"index", "selection"} & set(parts)
    if op.attr("select", 0) < 0 or (op.attr("select", 0) > 0) != bool(choosers) or len(choosers) > 1:
        raise GraphError(
            f"{op.name}: attends to {op.attr('select', 0)} context entries, chosen by {choosers or 'nothing'}",
            expected="select=K with the part index or selection, or neither",
        )
    if choosers and "context" not in parts:
        raise GraphError(f"{op.name}: there is no context to choose from")
    if "index" in parts and op.attr("index_heads", 0) < 1:
        raise GraphError(f"{op.name}: an index is scored by index_heads=N heads, N at least 1")


def _selected(op: Op, local: Sizes, full: Sizes) -> Num:
    """Keys attended per query on this rank."""
    keys: Num = local[_context_label(op, "window")] if part_index(op, "window") else 0
    if part_index(op, "context"):
        label = _context_label(op, "context")
        chosen = min(op.attr("select"), full[label]) if op.attr("select") else full[label] * op.attr("causal", 1.0)
        keys = keys + chosen * (local[label] / full[label])
    return keys


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Scores and values: 4 FLOPs per query, head, key and value dim. An indexer scored inside: a dot product of width d
    and 3 more operations (scale, ReLU, sum) per query, index head and key, at its own rate."""
    rows = math.prod(local[d] for d in op.output.dims)
    flops: dict[str, Num] = {op.peak: 4.0 * rows * _selected(op, local, full)}
    index = part_index(op, "index")
    if index is not None:
        heads, label, width = op.attr("index_heads"), *op.operands[index].dims[1:]
        queries = math.prod(local[d] for d in ("batch", *POSITIONS) if d in op.output.dims)
        per_key = 2.0 * heads * full[width] + 3.0 * heads
        flops["fp4"] = flops.get("fp4", 0.0) + per_key * queries * local[label] * op.attr("index_causal", 1.0)
    return flops


def _read_fraction(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    if index != part_index(op, "context") or not op.attr("select"):
        return 1.0
    label = _context_label(op, "context")
    chosen = min(op.attr("select"), full[label]) / full[label]
    return min(1.0, positions(op.output.dims, local) * chosen)


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
        stat_rows=tuple(d for d in ("batch", *POSITIONS) if d in q.dims) if merge else (),
        stat_bytes=CANDIDATE_BYTES * op.attr("select", 0) if merge else 0.0,
        partial_scale=1.0 + LSE_BYTES / op.attr("value_bytes", 1024.0),
    )
    return (*rows, fold)


def _check_index(op: Op) -> None:
    expect(op, 3)
    q, weights, _ = op.operands
    if len(q.dims) < 3:
        raise GraphError(f"{op.name}: {q.name} has the dims {' '.join(q.dims)}", expected="batch … heads width")
    expect_labels(op, weights.dims, q.dims[:-1], weights.name)
    expect_rank(op, 2, "batch", "entries", "width")
    batch, entries, width = op.operands[2].dims
    if batch not in q.dims[:-2] or entries in q.dims or width != q.dims[-1]:
        raise GraphError(
            f"{op.name}: the keys have the dims {' '.join(op.operands[2].dims)}", expected=f"… {q.dims[-1]}"
        )
    expect_labels(op, op.output.dims[:-1], q.dims[:-2], "the choice")
    if op.output.dims[-1] in (*q.dims, entries):
        raise GraphError(
            f"{op.name}: the last dim of the output counts the chosen entries", expected="a dim of its own"
        )


def _index_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """A dot product per query, index head and key; its ReLU, weight and sum over the heads are done in FP32."""
    q, keys = op.operands[0], op.operands[2]
    heads, width = q.dims[-2:]
    queries = math.prod(local[d] for d in ("batch", *POSITIONS) if d in q.dims)
    scores = local[heads] * queries * local[keys.dims[1]] * op.attr("causal", 1.0)
    return {op.peak: 2.0 * full[width] * scores, "fp32": 3.0 * scores}


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
        attrs={
            "parts": (tuple,),
            "select": (int,),
            "causal": NUMBER,
            "index_heads": (int,),
            "index_causal": NUMBER,
            "value_bytes": NUMBER,
        },
        check=_check,
        check_sizes=_check_width,
    )
)
register(
    OpKind(
        name="index_select",
        summary="ids of the top-k context entries by indexer score; operands: queries, head weights, index keys",
        cuts=_index_cuts,
        flops=_index_flops,
        attrs={"causal": NUMBER},
        check=_check_index,
    )
)
