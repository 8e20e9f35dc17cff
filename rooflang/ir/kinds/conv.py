"""A short causal convolution per channel, and its state: the last inputs of every channel.

Each output is silu(Σ over taps of weight · input), the last tap being the present position; what lies before the first
position is 0. A bias (channels…) may be added before the silu, as a third operand.

`short_conv` runs over a whole sequence: x (batch positions channels…), weight (channels… tap). A decode step has one
position: `conv_push` takes x (batch channels…) into the history (batch tap channels…), whose oldest input leaves it,
and `conv_step` convolves the history. With `fused`, `conv_step` finds on chip the history that `conv_push` has just
made. A cut of the sequence hands the last inputs of each shard on to the next one; `taps` is their number, and one.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import expect, expect_labels, par, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import DTYPES, Num

#: FLOPs of a silu.
SILU_FLOPS = 4.0


def tap_label(op: Op) -> str:
    """Label of the taps: the weight's last."""
    return op.operands[1].dims[-1]


def _check_bias(op: Op) -> None:
    weight, *bias = op.operands[1:]
    for tensor in bias:
        expect_labels(op, tensor.dims, weight.dims[:-1], tensor.name)


def _check_conv(op: Op) -> None:
    expect(op, 3 if len(op.operands) == 3 else 2)
    x, weight = op.operands[:2]
    expect_labels(op, x.dims, op.output.dims, x.name)
    if len(x.dims) < 3 or not weight.dims or tap_label(op) in x.dims:
        raise GraphError(f"{op.name}: {x.name} has the dims {' '.join(x.dims)}", expected="batch positions channels…")
    expect_labels(op, weight.dims, (*x.dims[2:], tap_label(op)), weight.name)
    _check_bias(op)


def _check_taps(op: Op, sizes: Mapping[str, int]) -> None:
    if op.attr("taps") != sizes[tap_label(op)]:
        raise GraphError(f"{op.name}: taps={op.attr('taps')}", expected=f"{sizes[tap_label(op)]}, as the weight has")


def _conv_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: (2.0 * full[tap_label(op)] + SILU_FLOPS) * op.output.elements(local)}


def _conv_cuts(op: Op) -> tuple[Cut, ...]:
    x = op.operands[0]
    batch, positions, *channels = x.dims
    scan = Cut(
        kind=CutKind.SCAN,
        dim=positions,
        operands=tuple(positions if positions in t.dims else REPLICATED for t in op.operands),
        out=positions,
        loops=(positions,),
        combine="suffix",
        stat_rows=(batch, *channels),
        stat_bytes=(op.attr("taps", 1) - 1) * DTYPES[x.dtype].bytes_per_element,
    )
    return (*(par(op, d) for d in (batch, *channels)), scan)


def _check_push(op: Op) -> None:
    expect(op, 2)
    x, history = op.operands
    if history.dims != op.output.dims or len(history.dims) < 2 or history.dims[1] in x.dims:
        raise GraphError(f"{op.name}: {history.name} has the dims {' '.join(history.dims)}", expected="batch tap …")
    expect_labels(op, x.dims, (history.dims[0], *history.dims[2:]), x.name)


def _push_cuts(op: Op) -> tuple[Cut, ...]:
    replica = Cut(kind=CutKind.PAR, dim="replica", operands=(REPLICATED, REPLICATED), out=REPLICATED)
    return (*pars(op, op.operands[0].dims), replica)


def _check_step(op: Op) -> None:
    expect(op, 3 if len(op.operands) == 3 else 2)
    history, weight = op.operands[:2]
    if len(history.dims) < 2 or not weight.dims or history.dims[1] != tap_label(op):
        raise GraphError(f"{op.name}: {history.name} has the dims {' '.join(history.dims)}", expected="batch tap …")
    expect_labels(op, weight.dims, history.dims[1:], weight.name)
    expect_labels(op, op.output.dims, (history.dims[0], *history.dims[2:]), "the output")
    _check_bias(op)


def _step_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return 0.0 if index == 0 and op.attr("fused") else 1.0


register(
    OpKind(
        name="short_conv",
        summary="causal convolution of a sequence per channel, then silu; operands: x, weight, maybe a bias",
        cuts=_conv_cuts,
        flops=_conv_flops,
        attrs={"taps": (int,)},
        check=_check_conv,
        check_sizes=_check_taps,
    )
)
register(
    OpKind(
        name="conv_push",
        summary="history with this step's input in it, the oldest out; operands: input, history",
        cuts=_push_cuts,
        check=_check_push,
        pure=False,
        in_place=1,
    )
)
register(
    OpKind(
        name="conv_step",
        summary="convolution of a history at its last position, then silu; operands: history, weight, maybe a bias",
        cuts=lambda op: tuple(pars(op, op.output.dims)),
        flops=_conv_flops,
        read_fraction=_step_read,
        attrs={"fused": (bool,)},
        check=_check_step,
    )
)
