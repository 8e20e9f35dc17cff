"""RMS norm over one label (`over`), with or without a learned gain, the second operand: a weight of that label, and
maybe of others beside it."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut, CutKind
from rooflang.ir.kinds.rows import expect, expect_labels, par
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check(op: Op) -> None:
    gain = op.operands[1:2]
    expect(op, 1 + len(gain))
    expect_labels(op, op.operands[0].dims, op.output.dims, op.operands[0].name)
    if op.attr("over") not in op.output.dims:
        raise GraphError(f"{op.name}: rms_norm needs over=<label>", expected="one of " + " ".join(op.output.dims))
    for tensor in gain:
        others = [d for d in tensor.dims if d in op.output.dims and d != op.attr("over")]
        expect_labels(op, tensor.dims, (op.attr("over"), *others), tensor.name)


def _cuts(op: Op) -> tuple[Cut, ...]:
    over = op.attr("over")
    rows = tuple(d for d in op.output.dims if d != over)
    # Cutting the normalised label needs the sum of squares and the count of every shard: one FP32 and one count that is
    # known from the shapes. A mean of local means would be wrong for uneven shards.
    cut = (over,) * len(op.operands)
    stat = Cut(kind=CutKind.STAT, dim=over, operands=cut, out=over, loops=(over,), stat_rows=rows, stat_bytes=4.0)
    return (*(par(op, d) for d in rows), stat)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: 4.0 * op.output.elements(local)}


register(
    OpKind(
        name="rms_norm",
        summary="x / rms(x) over one label, times a gain",
        cuts=_cuts,
        flops=_flops,
        attrs={"over": (str,)},
        check=_check,
    )
)
