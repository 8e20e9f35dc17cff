"""RMS norm over one label (`over`). The learned scale is folded into the next weight, as quantised checkpoints are served."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut, CutKind
from rooflang.ir.kinds.rows import expect, expect_labels, par
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check(op: Op) -> None:
    expect(op, 1)
    expect_labels(op, op.operands[0].dims, op.output.dims, op.operands[0].name)
    if op.attr("over") not in op.output.dims:
        raise GraphError(f"{op.name}: rms_norm needs over=<label>", expected="one of " + " ".join(op.output.dims))


def _cuts(op: Op) -> tuple[Cut, ...]:
    over = op.attr("over")
    rows = tuple(d for d in op.output.dims if d != over)
    # Cutting the normalised label needs the sum of squares and the count of every shard: one FP32 and one count that is
    # known from the shapes. A mean of local means would be wrong for uneven shards.
    stat = Cut(kind=CutKind.STAT, dim=over, operands=(over,), out=over, loops=(over,), stat_rows=rows, stat_bytes=4.0)
    return (*(par(op, d) for d in rows), stat)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: 4.0 * op.output.elements(local)}


register(OpKind(name="rms_norm", summary="x / rms(x) over one label", cuts=_cuts, flops=_flops, check=_check))
