"""Softmax over one label (`over`)."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut, CutKind
from rooflang.ir.kinds.attention import LSE_BYTES
from rooflang.ir.kinds.rows import expect, expect_labels, par
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check(op: Op) -> None:
    expect(op, 1)
    expect_labels(op, op.operands[0].dims, op.output.dims, op.operands[0].name)
    if op.attr("over") not in op.output.dims:
        raise GraphError(f"{op.name}: softmax needs over=<label>", expected="one of " + " ".join(op.output.dims))


def _cuts(op: Op) -> tuple[Cut, ...]:
    over = op.attr("over")
    rows = tuple(d for d in op.output.dims if d != over)
    # Shards exchange their largest element and the sum of exponentials; a softmax of each shard would be wrong.
    stat = Cut(
        kind=CutKind.STAT,
        dim=over,
        operands=(over,),
        out=over,
        loops=(over,),
        combine="lse",
        stat_rows=rows,
        stat_bytes=LSE_BYTES,
    )
    return (*(par(op, d) for d in rows), stat)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Per element: the maximum, a difference, an exponential, the sum, a quotient."""
    return {op.peak: 5.0 * op.output.elements(local)}


register(
    OpKind(
        name="softmax",
        summary="eˣ divided by its sum over one label",
        cuts=_cuts,
        flops=_flops,
        attrs={"over": (str,)},
        check=_check,
    )
)
