"""Matrix products, by labels: a label of both operands that the output lacks is summed over.

`matmul` is an einsum of an activation and a weight (or two activations). Labels in all three are batch labels (a
grouped or per-expert product). `gated_matmul` is up-projection, gate and activation in one, f(x·W₀) * (x·W₁) with the
`function` f of a gated activation: its weight has one more label (`gate`, of size 2), a third operand adds a bias to
both products, and the nonlinearity inside forbids a cut of the summed label. With `streamed`, its rows are made and
read expert by expert: they are never all in memory at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.gated import check_function
from rooflang.ir.kinds.rows import contracted, expect, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num, Role

GATE = "gate"


def summed(op: Op) -> tuple[str, ...]:
    """Labels that the product sums over."""
    left, right = op.operands[:2]
    return tuple(d for d in left.dims if d in right.dims and d not in op.output.dims)


def _check(op: Op) -> None:
    if op.kind != "gated_matmul" or len(op.operands) != 3:
        expect(op, 2)
    left, right = op.operands[:2]
    free = (set(left.dims) | set(right.dims)) - set(summed(op))
    if op.kind == "gated_matmul":
        if GATE in left.dims or GATE not in right.dims:
            raise GraphError(f"{op.name}: the weight of {op.kind}, and only it, has the dim {GATE!r}")
        free.remove(GATE)
        check_function(op)
        for bias in op.operands[2:]:
            if GATE not in bias.dims or not set(bias.dims) <= set(right.dims) - set(summed(op)):
                raise GraphError(f"{op.name}: {bias.name} has the dims {' '.join(bias.dims)}", expected="gate and rows")
    if set(op.output.dims) != free:
        raise GraphError(
            f"{op.name}: a product of {' '.join(left.dims)} and {' '.join(right.dims)} cannot have the dims"
            f" {' '.join(op.output.dims)}",
            expected=" ".join(d for d in (*left.dims, *right.dims) if d in free),
        )
    if not summed(op):
        raise GraphError(f"{op.name}: the operands of {op.kind} share no dim to sum over")


def _check_gate(op: Op, sizes: Mapping[str, int]) -> None:
    if sizes[GATE] != 2:
        raise GraphError(f"{op.name}: the dim {GATE!r} has the size {sizes[GATE]}", expected="2: gate and up")


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    once = local[GATE] * op.output.elements(local) if len(op.operands) > 2 else 0.0
    return {op.peak: 2.0 * op.operands[0].fill * math.prod(local[d] for d in op.labels) + once}


def _matmul_cuts(op: Op) -> tuple[Cut, ...]:
    return (*pars(op, op.output.dims), *(contracted(op, d) for d in summed(op)))


def _gated_cuts(op: Op) -> tuple[Cut, ...]:
    return tuple(pars(op, op.output.dims))


def expert_read_fraction(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """Share of a weight that is read. A weight whose expert label the activation fills by k/E is read where a token is
    routed: E·(1 − (1 − k/E)^tokens) experts in expectation, or min(E, tokens·k) if every route hits another expert.
    Where some experts are chosen more often than others, `rooflang.ir.load` says how many a rank reads."""
    rows, weight = op.operands[0], op.operands[index]
    if index == 0 or rows.fill == 1.0 or weight.role != Role.WEIGHT:
        return 1.0
    tokens = math.prod(local[d] for d in rows.dims if d not in weight.dims)
    if assumptions.skewed:
        from rooflang.ir.load import read_share

        own = [d for d in rows.dims if d in weight.dims and d in op.output.dims]
        experts, held = (math.prod(sizes[d] for d in own) for sizes in (full, local))
        return read_share(assumptions, experts, rows.fill * experts, experts / held, tokens)
    if assumptions.expert_coverage == "distinct":
        share = tokens * rows.fill
        return share * (share < 1) + 1.0 * (share >= 1)
    return 1.0 - (1.0 - rows.fill) ** tokens


register(
    OpKind(
        name="matmul",
        summary="matrix product over the shared labels that the output lacks",
        cuts=_matmul_cuts,
        flops=_flops,
        read_fraction=expert_read_fraction,
        check=_check,
    )
)
register(
    OpKind(
        name="gated_matmul",
        summary="f(x·W_gate) * (x·W_up) in one kernel; the nonlinearity forbids a cut of the summed label",
        cuts=_gated_cuts,
        flops=_flops,
        read_fraction=expert_read_fraction,
        attrs={"streamed": (bool,), "function": (str,)},
        refuses=lambda op: dict.fromkeys(summed(op), "the nonlinearity comes after the sum over all of it"),
        check=_check,
        check_sizes=_check_gate,
    )
)
