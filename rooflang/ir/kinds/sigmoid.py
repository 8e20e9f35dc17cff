"""An output gate: x · sigmoid(g), element by element, or with one gate for all elements of a row that g has no label
of."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.rows import expect, expect_labels, linear, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check(op: Op) -> None:
    expect(op, 2)
    x, gate = op.operands
    expect_labels(op, x.dims, op.output.dims, x.name)
    if not set(gate.dims) <= set(x.dims):
        raise GraphError(
            f"{op.name}: {gate.name} has the dims {' '.join(gate.dims)}", expected=f"some of {' '.join(x.dims)}"
        )


def _cuts(op: Op) -> tuple[Cut, ...]:
    return (*pars(op, op.output.dims), linear(op, (0,)))


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Four FLOPs a sigmoid, one for the product."""
    return {op.peak: 4.0 * op.operands[1].elements(local) + op.output.elements(local)}


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
