"""Hyper-connections: a residual stream of several copies, mixed before and written back after each sub-layer.

DeepSeek V4's mHC keeps `hc_mult` copies. The mixing coefficients come from a small projection of the stream (a `matmul`);
`hyper_read` mixes the copies into a sub-layer's input and `hyper_write` mixes its output back.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.ir.cut import Cut
from rooflang.ir.kinds.rows import expect, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _copies(op: Op) -> str:
    return str(op.attr("copies", "copy"))


def _cuts(op: Op) -> tuple[Cut, ...]:
    return tuple(pars(op, [d for d in op.output.dims if d != _copies(op)]))


def _read_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """A multiply and an add per element of the stream."""
    return {"bf16": 2.0 * op.operands[0].elements(local)}


def _write_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Each new copy is a combination of all old copies and the sub-layer's output."""
    return {"bf16": 2.0 * op.output.elements(local) * (full[_copies(op)] + 1)}


register(
    OpKind(
        name="hyper_expand",
        summary="start of the stream: the embedding in every copy",
        cuts=_cuts,
        check=lambda op: expect(op, 1),
    )
)
register(
    OpKind(
        name="hyper_read",
        summary="mix the copies into one; operands: stream, coefficients",
        cuts=_cuts,
        flops=_read_flops,
        check=lambda op: expect(op, 2),
    )
)
register(
    OpKind(
        name="hyper_write",
        summary="mix a sub-layer's output into the copies; operands: stream, coefficients, output",
        cuts=_cuts,
        flops=_write_flops,
        check=lambda op: expect(op, 3),
    )
)
