"""Named fusions: two operators in one kernel, their intermediate never leaves the chip.

A fused operator is an `Op` of the fusion's kind whose attributes hold the two operators it was made of and the operand
of the outer one that the inner one produced. A tensor that both read is one operand, read once. Its signature follows
from theirs: a cut of the outer operator survives where the inner one can deliver the intermediate in that state without
a step between the two, and where both read what they share in one layout.

The outer operator may be a fused one itself: gate·up·activation is a gated activation with the gate's projection, and
that with the projection of up.

Products of one input whose outputs go different ways are another form, `SHARED_INPUT`: the joint product of them
(`rooflang.ir.kinds.joint`) reads the input once, and each product becomes a part of what that makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.joint import JOINT, features
from rooflang.ir.kinds.segment import PART
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
    Fusion(
        name="matmul_gate",
        summary="gate's projection, its activation and the product with up in the epilogue",
        outer="gated_activation",
        inner="matmul",
        operand=0,
    ),
    Fusion(
        name="gated_projections",
        summary="gate·up·activation: both projections of one input, activation and product",
        outer="matmul_gate",
        inner="matmul",
        operand=2,
    ),
    Fusion(
        name="norm_projections",
        summary="norm in the prologue of gate·up·activation",
        outer="gated_projections",
        inner="rms_norm",
        operand=0,
    ),
    Fusion(name="route_dispatch", summary="top-k and dispatch in one", outer="dispatch", inner="route", operand=1),
    Fusion(
        name="norm_joint",
        summary="norm in the prologue of products that share their input",
        outer=JOINT,
        inner="rms_norm",
        operand=0,
    ),
)

#: The outer operator is one of the products, the inner one all of them; it feeds no operand of the outer one.
SHARED_INPUT = Fusion(
    name=PART,
    summary="projections that share their input, such as those of q and kv: one kernel, whose output each is a part of",
    outer="matmul",
    inner=JOINT,
    operand=-1,
)

#: All of them by name.
NAMED = {each.name: each for each in (*FUSIONS, SHARED_INPUT)}


def fits(fusion: Fusion, outer: Op, inner: Op) -> bool:
    """Are the two what the fusion is for, and connected as it says?"""
    if (outer.kind, inner.kind) != (fusion.outer, fusion.inner):
        return False
    if fusion is SHARED_INPUT:
        x, weight = outer.operands
        own = [d for d in weight.dims if d not in x.dims]
        return x == inner.operands[0] and weight in inner.operands[1:] and own == list(outer.output.dims[-1:])
    return outer.operands[fusion.operand].name == inner.output.name


def fuse(fusion: Fusion, outer: Op, inner: Op) -> Op:
    """The fused operator. Raises `GraphError` where the two are not what the fusion is for."""
    if (outer.kind, inner.kind) != (fusion.outer, fusion.inner):
        raise GraphError(f"{fusion.name} fuses {fusion.inner} into {fusion.outer}, not {inner.kind} into {outer.kind}")
    if not fits(fusion, outer, inner):
        wanted = f"feed operand {fusion.operand} of" if fusion.operand >= 0 else "make what is made by"
        raise GraphError(f"{fusion.name}: {inner.name} does not {wanted} {outer.name}")
    if fusion is SHARED_INPUT:
        return _part(outer, inner)
    return composed(fusion.name, outer, inner, fusion.operand)


def _part(product: Op, joint: Op) -> Op:
    """One of the products as a part of what the joint one makes."""
    made = features(joint)
    before = made[: made.index(product.output.dims[-1])]
    attrs = (("inner", joint), ("outer", product))
    return Op(
        name=product.name,
        kind=PART,
        operands=(joint.output,),
        output=product.output,
        attrs=((("after", before), *attrs) if before else attrs),
        block=product.block,
        group=product.group,
        compute=product.peak,
    )


def composed(kind: str, outer: Op, inner: Op, at: int) -> Op:
    """The fused operator of a kind: `inner` in the place of operand `at` of `outer`."""
    read = {t.name: t for t in (*outer.operands[:at], *inner.operands, *outer.operands[at + 1 :])}
    place = {name: number for number, name in enumerate(read)}
    outside = tuple(-1 if i == at else place[t.name] for i, t in enumerate(outer.operands))
    inside = tuple(place[t.name] for t in inner.operands)
    return Op(
        name=f"{inner.name}+{outer.name}",
        kind=kind,
        operands=tuple(read.values()),
        output=outer.output,
        attrs=(("at", at), ("inner", inner), ("outer", outer), ("wiring", (outside, inside))),
        block=outer.block,
        group=outer.group,
        compute=outer.peak,
    )


def wiring(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each operand of the outer and of the inner operator its place among those of the fused one; -1 is the
    intermediate."""
    found: tuple[tuple[int, ...], tuple[int, ...]] = op.attr("wiring")
    return found


def chain(op: Op) -> tuple[Op, ...]:
    """The fused operators that lead to this one, the first fusion first; none for an operator that is not fused."""
    outer = op.attr("outer")
    return (*chain(outer), op) if isinstance(outer, Op) else ()


def covered(op: Op) -> tuple[str, ...]:
    """Names of the operators that a kernel stands for, inner ones first."""
    outer, inner = op.attr("outer"), op.attr("inner")
    return (inner.name, *covered(outer)) if isinstance(outer, Op) else (op.name,)


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
    rows = []
    for cut in signature(outer):
        if cut.kind not in (CutKind.STAT, CutKind.ROUTE):
            for feed in _inner_cuts(inner, cut.operands[at], cut):
                entries = _entries(op, cut, feed)
                if entries is not None:
                    rows.append(_both(cut, feed, entries))
    return tuple(rows)


def _entries(op: Op, cut: Cut, feed: Cut) -> tuple[str, ...] | None:
    """How the operands lie; None where the two want one of them differently."""
    found: dict[int, str] = {}
    for places, entries in zip(wiring(op), (cut.operands, feed.operands), strict=True):
        for place, entry in zip(places, entries, strict=True):
            if place >= 0 and found.setdefault(place, entry) != entry:
                return None
    return tuple(found[place] for place in range(len(op.operands)))


def _both(cut: Cut, feed: Cut, entries: tuple[str, ...]) -> Cut:
    return Cut(
        kind=cut.kind,
        dim=feed.dim if cut.kind is CutKind.LINEAR else cut.dim,
        operands=entries,
        out=cut.out,
        loops=tuple(dict.fromkeys((*cut.loops, *feed.loops))),
        combine=cut.combine,
        partial_scale=cut.partial_scale,
        multiple_of=math.lcm(cut.multiple_of, feed.multiple_of),
        grouped=cut.grouped or feed.grouped,
    )


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    total: dict[str, Num] = {}
    for part in parts(op)[:2]:
        for peak, flops in op_kind(part.kind).flops(part, local, full).items():
            total[peak] = total.get(peak, 0.0) + flops
    return total


def _read_fraction(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """What is read for either of the two: what both read is read once."""
    share: Num = 0.0
    for part, places in zip(parts(op)[:2], wiring(op), strict=True):
        for number, place in enumerate(places):
            if place == index:
                read = op_kind(part.kind).read_fraction(part, number, local, full, assumptions)
                share = share * (share >= read) + read * (read > share)
    return share


for _fusion in FUSIONS:
    register(
        OpKind(
            name=_fusion.name,
            summary=_fusion.summary,
            cuts=_cuts,
            flops=_flops,
            read_fraction=_read_fraction,
            attrs={"at": (int,), "inner": (Op,), "outer": (Op,), "wiring": (tuple,)},
            check=_check,
        )
    )
