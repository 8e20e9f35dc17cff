"""fuse_kernels: named pairs of operators become one kernel, products that share their input become parts of one, and a
token cut with its all-to-all becomes a routed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rooflang.ir.cut import CutKind
from rooflang.ir.joint import apart_because, joint_of
from rooflang.ir.kinds.fused import NAMED, SHARED_INPUT, fuse, wiring
from rooflang.ir.op import Op, op_kind
from rooflang.rules.examples import mlp
from rooflang.rules.record import Egglog, Exactness, Ok, Refusal, Rule, Verdict
from rooflang.rules.text import decide_by_row, row
from rooflang.rules.theory import Shape, Theory, fusion_of

NAME = "fuse_kernels"


def check(outer: Op, inner: Op) -> Verdict:
    """May `inner` be computed inside `outer`, which reads it, or both in one kernel that reads their input once? `Ok`
    carries the fused `Op`: for products that share their input the joint one, and for one of them and that, a part."""
    fusion = fusion_of(outer, inner)
    if fusion is not None:
        return Ok(result=fuse(fusion, outer, inner))
    if outer.kind == inner.kind == "matmul" and inner.output not in outer.operands:
        return _side_by_side(outer, inner)
    if not op_kind(inner.kind).pure:
        return Refusal(code="side-effect", reason=f"{inner.name} has side effects, and others may read its output")
    if (outer.kind, inner.kind) not in {(named.outer, named.inner) for named in NAMED.values()}:
        return Refusal(code="no-such-fusion", reason=f"no named fusion computes {inner.kind} inside {outer.kind}")
    return Refusal(code="not-adjacent", reason=f"{outer.name} does not read {inner.name} as the operand that fuses")


def _side_by_side(one: Op, other: Op) -> Verdict:
    why = apart_because([one, other])
    return Ok(result=joint_of([one, other])) if why is None else Refusal(code=why[0], reason=why[1])


def facts(theory: Theory) -> Iterable[str]:
    """`(Fuse wiring outer inner kernel)` for the pairs of this block, the wiring by its number in the shape,
    `(Part product joint kernel)` for products that share their input, and `(Route<n> kernel row c0 … co)` for routed
    cuts."""
    number = {each: n for n, each in enumerate(theory.shape.fusions)}
    for pair in theory.pairs:
        yield f"(Fuse {number[wiring(theory.kernels[pair.kernel])]} {pair.outer} {pair.inner} {pair.kernel})"
    for part in theory.parts:
        yield f"(Part {part.outer} {part.inner} {part.kernel})"
    for kernel, op in enumerate(theory.kernels):
        for index, cut in theory.rows(op):
            if cut.kind is CutKind.ROUTE:
                digits = " ".join(str(theory.codes[entry]) for entry in (*cut.operands, cut.out))
                yield f"(Route{len(op.operands)} {kernel} {index} {digits})"


def _fuse_rule(number: int, outside: Sequence[int], inside: Sequence[int]) -> str:
    reads = " ".join("y" if place < 0 else f"x{place}" for place in outside)
    within = " ".join(f"x{place}" for place in inside)
    count = 1 + max(*outside, *inside)
    return (
        f"(rule ((= e (Op{len(outside)} ko {reads})) (= y (Op{len(inside)} ki {within})) (Fuse {number} ko ki kf))\n"
        f"      ((union e (Op{count} kf {row('x', count)}))) :ruleset {NAME})"
    )


def _part_rule(arity: int) -> str:
    """A product of x is a part of the joint product of x."""
    return (
        f"(rule ((= e (Op2 ko x0 w)) (= y (Op{arity} ki {row('x', arity)})) (Part ko ki kp))\n"
        f"      ((union e (Op1 kp y))) :ruleset {NAME})"
    )


def rules(shape: Shape) -> tuple[str, ...]:
    fused = (_fuse_rule(number, *each) for number, each in enumerate(shape.fusions))
    parts = (_part_rule(arity) for arity in shape.joint)
    routed = (decide_by_row("Route", arity, NAME) for arity in shape.arities)
    return (*fused, *parts, *routed)


RULE = Rule(
    name=NAME,
    summary="compute an operator inside the one that reads it: the intermediate never leaves the chip",
    before="outer(…, inner(z), …); x·V and x·W; or dispatch and combine cut by tokens, beside an all-to-all",
    after="fused(…, z, …); two ranges of x·[V | W]; or the routed kernel that holds its all-to-all",
    why=(
        "the fused kernel is defined as the composition, roundings included; other readers of the intermediate still "
        "find it, since the unfused form stays in the same class; columns of a product are products with columns"
    ),
    preconditions=(
        "a named fusion of the two kinds",
        "inner feeds that operand of outer, or both are products of one input with weights of one format",
        "inner is free of side effects",
    ),
    exactness=Exactness.EXACT,
    evidence=(
        "fused kernels, whole and cut, equal the two operators apart; products that share their input are parts of "
        "their joint one; routed kernels equal a token cut and its all-to-all"
    ),
    check=check,
    fires=lambda: check(mlp().op_by_name["up"], mlp().op_by_name["norm"]),
    refused=lambda: check(mlp().op_by_name["down"], mlp().op_by_name["up"]),
    egglog=Egglog(rules=rules, facts=facts),
    table=tuple(
        f"{each.name}, {each.outer} of {each.inner}: {each.summary}"
        if each is SHARED_INPUT
        else f"{each.name}, {each.inner} inside {each.outer}: {each.summary}"
        for each in NAMED.values()
    ),
)
