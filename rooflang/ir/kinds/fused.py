"""Named fusions: two operators in one kernel, their intermediate never leaves the chip.

A fused operator is an `Op` of the fusion's kind whose attributes hold the two operators it was made of and the operand
of the outer one that the inner one produced. Its signature follows from theirs: a cut of the outer operator survives
where the inner one can deliver the intermediate in that state without a step between the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.op import Op, OpKind, Sizes, op_kind, register, signature
from rooflang.ir.tensor import Num


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """`inner` feeds operand `operand` of `outer`; together they are one kernel called `name`."""

    name: str
    summary: str
    outer: str
    inner: str
    operand: int


FUSIONS = (
    Fusion(
        name="norm_matmul",
        summary="norm in the prologue of a product",
        outer="matmul",
        inner="rms_norm",
        operand=0,
    ),
    Fusion(
        name="norm_gated",
        summary="norm in the prologue of gate·up",
        outer="gated_matmul",
        inner="rms_norm",
        operand=0,
    ),
    Fusion(name="matmul_add", summary="residual add in the epilogue", outer="add", inner="matmul", operand=1),
    Fusion(name="combine_add", summary="shared expert added by combine", outer="add", inner="combine", operand=0),
    Fusion(name="add_norm", summary="residual add in the prologue of a norm", outer="rms_norm", inner="add", operand=0),
    Fusion(name="norm_rope", summary="norm of queries or keys, then RoPE", outer="rope", inner="rms_norm", operand=0),
    Fusion(
        name="matmul_activation",
        summary="activation in the epilogue of a product",
        outer="activation",
        inner="matmul",
        operand=0,
    ),
    Fusion(name="route_dispatch", summary="top-k and dispatch in one", outer="dispatch", inner="route", operand=1),
)


def fuse(fusion: Fusion, outer: Op, inner: Op) -> Op:
    """The fused operator. Raises `GraphError` where the two are not what the fusion is for."""
    if (outer.kind, inner.kind) != (fusion.outer, fusion.inner):
        raise GraphError(f"{fusion.name} fuses {fusion.inner} into {fusion.outer}, not {inner.kind} into {outer.kind}")
    if outer.operands[fusion.operand].name != inner.output.name:
        raise GraphError(f"{fusion.name}: {inner.name} does not feed operand {fusion.operand} of {outer.name}")
    at = fusion.operand
    return Op(
        name=f"{inner.name}+{outer.name}",
        kind=fusion.name,
        operands=(*outer.operands[:at], *inner.operands, *outer.operands[at + 1 :]),
        output=outer.output,
        attrs=(("at", at), ("inner", inner), ("outer", outer)),
        block=outer.block,
        group=outer.group,
        compute=outer.peak,
    )


def parts(op: Op) -> tuple[Op, Op, int]:
    """The outer and the inner operator of a fused one, and the operand of the outer that the inner makes."""
    return op.attr("outer"), op.attr("inner"), op.attr("at")


def _check(op: Op) -> None:
    outer, inner, at = parts(op)
    if not isinstance(outer, Op) or not isinstance(inner, Op) or not isinstance(at, int):
        raise GraphError(f"{op.name}: {op.kind} is made from two operators by a fusion, it cannot be declared")


def _inner_cuts(inner: Op, state: str, cut: Cut) -> tuple[Cut, ...]:
    """The ways in which the inner operator delivers its output in that state, for a cut of the outer one, with no step
    of its own. It runs whole only where the cut has none of its labels: what a kernel reads is sliced before anything
    in it runs, and a route of a slice of the logits, say, is another one."""
    if state == REPLICATED:
        own = {d for t in (*inner.operands, inner.output) for d in t.dims}
        if own & {*cut.operands, cut.out}:
            return ()
        whole = (REPLICATED,) * len(inner.operands)
        return (Cut(kind=CutKind.PAR, dim="", operands=whole, out=REPLICATED),)
    wanted = (CutKind.SUM, CutKind.LINEAR) if state == PARTIAL else (CutKind.PAR,)
    return tuple(c for c in signature(inner) if c.out == state and c.kind in wanted)


def _cuts(op: Op) -> tuple[Cut, ...]:
    outer, inner, at = parts(op)
    return tuple(
        Cut(
            kind=cut.kind,
            dim=feed.dim if cut.kind is CutKind.LINEAR else cut.dim,
            operands=(*cut.operands[:at], *feed.operands, *cut.operands[at + 1 :]),
            out=cut.out,
            loops=tuple(dict.fromkeys((*cut.loops, *feed.loops))),
            combine=cut.combine,
            partial_scale=cut.partial_scale,
            multiple_of=math.lcm(cut.multiple_of, feed.multiple_of),
            grouped=cut.grouped or feed.grouped,
        )
        for cut in signature(outer)
        if cut.kind not in (CutKind.STAT, CutKind.ROUTE)
        for feed in _inner_cuts(inner, cut.operands[at], cut)
    )


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    total: dict[str, Num] = {}
    for part in parts(op)[:2]:
        for peak, flops in op_kind(part.kind).flops(part, local, full).items():
            total[peak] = total.get(peak, 0.0) + flops
    return total


def _read_fraction(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    outer, inner, at = parts(op)
    if at <= index < at + len(inner.operands):
        return op_kind(inner.kind).read_fraction(inner, index - at, local, full, assumptions)
    own = index if index < at else index - len(inner.operands) + 1
    return op_kind(outer.kind).read_fraction(outer, own, local, full, assumptions)


for _fusion in FUSIONS:
    register(
        OpKind(
            name=_fusion.name,
            summary=_fusion.summary,
            cuts=_cuts,
            flops=_flops,
            read_fraction=_read_fraction,
            attrs={"at": (int,), "inner": (Op,), "outer": (Op,)},
            check=_check,
        )
    )
