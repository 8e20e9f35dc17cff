"""Hyper-connections: a residual stream of several copies, mixed before and written back after each sub-layer.

DeepSeek V4's mHC keeps `hc_mult` copies. The mixing coefficients come from a small projection of the stream (a
`matmul`); `hyper_read` mixes the copies into a sub-layer's input and `hyper_write` mixes its output back. The
coefficients of a token are, in this order: C to read, C to write, C × C to mix the copies; fewer are used again from
the first on. The label of the copies is the attribute `copies`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.rows import expect, expect_labels, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def copies_label(op: Op) -> str:
    """Label of the copies of the stream."""
    return str(op.attr("copies", "copy"))


def mixed_labels(op: Op) -> tuple[str, ...]:
    """Labels of the coefficients that are not tokens; the copies' own may be among them."""
    stream, coefficients = op.operands[0].dims, op.operands[1].dims
    return tuple(d for d in coefficients if d not in stream or d == copies_label(op))


def _check_expand(op: Op) -> None:
    expect(op, 1)
    expect_labels(op, op.output.dims, (*op.operands[0].dims, copies_label(op)), "the stream")


def _check_mixed(op: Op, stream: tuple[str, ...], single: tuple[str, ...]) -> None:
    expect_labels(op, stream, (*single, copies_label(op)), "the stream")
    if not mixed_labels(op):
        raise GraphError(f"{op.name}: {op.operands[1].name} has no dim of coefficients")


def _check_read(op: Op) -> None:
    expect(op, 2)
    _check_mixed(op, op.operands[0].dims, op.output.dims)


def _check_write(op: Op) -> None:
    expect(op, 3)
    expect_labels(op, op.output.dims, op.operands[0].dims, "the output")
    _check_mixed(op, op.output.dims, op.operands[2].dims)


def _cuts(op: Op) -> tuple[Cut, ...]:
    return tuple(pars(op, [d for d in op.output.dims if d != copies_label(op)]))


def _read_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """A multiply and an add per element of the stream."""
    return {"bf16": 2.0 * op.operands[0].elements(local)}


def _write_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Each new copy is a combination of all old copies and the sub-layer's output."""
    return {"bf16": 2.0 * op.output.elements(local) * (full[copies_label(op)] + 1)}


register(
    OpKind(
        name="hyper_expand",
        summary="start of the stream: the embedding in every copy",
        cuts=_cuts,
        attrs={"copies": (str,)},
        check=_check_expand,
    )
)
register(
    OpKind(
        name="hyper_read",
        summary="mix the copies into one; operands: stream, coefficients",
        cuts=_cuts,
        flops=_read_flops,
        attrs={"copies": (str,)},
        check=_check_read,
    )
)
register(
    OpKind(
        name="hyper_write",
        summary="mix a sub-layer's output into the copies; operands: stream, coefficients, output",
        cuts=_cuts,
        flops=_write_flops,
        attrs={"copies": (str,)},
        check=_check_write,
    )
)
