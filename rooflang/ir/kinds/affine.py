"""A bias and a factor: x + b, x · c.

`bias` adds b, whose labels are some of those of x, to every row of x. It is added once: summands of x may not be given
a bias each. `scale` multiplies by the number `factor` (embeddings by √hidden in Gemma, arXiv 2403.08295; the routed
experts' output in DeepSeek-V3, arXiv 2412.19437), which summands may.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.kinds.rows import expect, expect_labels, linear, pars
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check_bias(op: Op) -> None:
    expect(op, 2)
    x, b = op.operands
    expect_labels(op, x.dims, op.output.dims, x.name)
    if not set(b.dims) <= set(x.dims):
        raise GraphError(f"{op.name}: {b.name} has the dims {' '.join(b.dims)}", expected=f"some of {' '.join(x.dims)}")


def _check_scale(op: Op) -> None:
    expect(op, 1)
    expect_labels(op, op.operands[0].dims, op.output.dims, op.operands[0].name)


def _one_flop(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: op.output.elements(local)}


register(
    OpKind(
        name="bias",
        summary="x + b, b the same for every row; operands: x, b",
        cuts=lambda op: tuple(pars(op, op.output.dims)),
        flops=_one_flop,
        refuses=lambda op: {"partial": "a bias is added once, not to every summand"},
        check=_check_bias,
    )
)
register(
    OpKind(
        name="scale",
        summary="x times a number",
        cuts=lambda op: (*pars(op, op.output.dims), linear(op, (0,))),
        flops=_one_flop,
        attrs={"factor": NUMBER},
        check=_check_scale,
        linear=True,
    )
)
