"""Layer norm over one label (`over`): centred, divided by the standard deviation, times a gain, plus a bias."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut, CutKind
from rooflang.ir.kinds.rows import expect, expect_labels, par
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check(op: Op) -> None:
    expect(op, 3)
    expect_labels(op, op.operands[0].dims, op.output.dims, op.operands[0].name)
    if op.attr("over") not in op.output.dims:
        raise GraphError(f"{op.name}: layer_norm needs over=<label>", expected="one of " + " ".join(op.output.dims))
    for tensor in op.operands[1:]:
        expect_labels(op, tensor.dims, (op.attr("over"),), tensor.name)


def _cuts(op: Op) -> tuple[Cut, ...]:
    over = op.attr("over")
    rows = tuple(d for d in op.output.dims if d != over)
    # Shards exchange their FP32 sums of elements and of squares; the count is known from the shapes.
    stat = Cut(
        kind=CutKind.STAT, dim=over, operands=(over,) * 3, out=over, loops=(over,), stat_rows=rows, stat_bytes=8.0
    )
    return (*(par(op, d) for d in rows), stat)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Per element: two sums and a square, a centring, a scale, the gain and the bias."""
    return {op.peak: 7.0 * op.output.elements(local)}


register(
    OpKind(
        name="layer_norm",
        summary="(x − mean) / deviation over one label, times a gain, plus a bias; operands: x, gain, bias",
        cuts=_cuts,
        flops=_flops,
        attrs={"over": (str,)},
        check=_check,
    )
)
