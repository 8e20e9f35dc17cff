"""An output gate: x · sigmoid(g), element by element."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.ir.cut import Cut
from rooflang.ir.kinds.rows import expect, expect_labels, linear, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check(op: Op) -> None:
    expect(op, 2)
    for tensor in op.operands:
        expect_labels(op, tensor.dims, op.output.dims, tensor.name)


def _cuts(op: Op) -> tuple[Cut, ...]:
    return (*pars(op, op.output.dims), linear(op, (0,)))


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Four FLOPs a sigmoid, one for the product."""
    return {op.peak: 5.0 * op.output.elements(local)}


register(
    OpKind(
        name="sigmoid_mul",
        summary="x · sigmoid(g); operands: x, g",
        cuts=_cuts,
        flops=_flops,
        check=_check,
        linear=True,
    )
)
