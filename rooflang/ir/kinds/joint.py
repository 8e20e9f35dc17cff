"""Products of one input in one kernel, their outputs side by side along one dim: [x·W₁ | x·W₂ | …].

The kernel reads x once. Each product is a range of what it makes (`part` in `rooflang.ir.kinds.segment`). Rows may be
cut, and what is summed over; the dim of all products may not: a contiguous shard of it would be the whole of one
product and nothing of another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.rows import contracted, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

JOINT = "joint_matmul"


def features(op: Op) -> tuple[str, ...]:
    """The label that each product has beside those of the input, in order."""
    return tuple(d for weight in op.operands[1:] for d in weight.dims if d not in op.operands[0].dims)


def joint_label(op: Op) -> str:
    """The label of all products together."""
    (label,) = (d for d in op.output.dims if d not in op.operands[0].dims)
    return label


def _summed(op: Op) -> tuple[str, ...]:
    return tuple(d for d in op.operands[0].dims if d not in op.output.dims)


def _check(op: Op) -> None:
    x, weights = op.operands[0], op.operands[1:]
    if len(weights) < 2:
        raise GraphError(f"{op.name}: {op.kind} takes an input and two weights or more")
    summed = _summed(op)
    if not summed or len(set(op.output.dims) - set(x.dims)) != 1:
        raise GraphError(
            f"{op.name}: {op.kind} of {' '.join(x.dims)} has the dims {' '.join(op.output.dims)}",
            expected="those that it does not sum over, and one for all products",
        )
    for weight in weights:
        own = set(weight.dims) - set(x.dims)
        if len(own) != 1 or set(weight.dims) - own != set(summed):
            raise GraphError(f"{op.name}: {weight.name} has the dims {' '.join(weight.dims)}",
                             expected=f"{' '.join(summed)} and one of its own")  # fmt: skip


def _check_sizes(op: Op, sizes: Mapping[str, int]) -> None:
    label, total = joint_label(op), sum(sizes[label] for label in features(op))
    if sizes[label] != total:
        raise GraphError(f"{op.name}: {label} has {sizes[label]} elements", expected=f"{total}, those of all products")


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    x = op.operands[0]
    return {op.peak: 2.0 * x.fill * math.prod(local[d] for d in x.dims) * local[joint_label(op)]}


def _cuts(op: Op) -> tuple[Cut, ...]:
    rows = [d for d in op.output.dims if d in op.operands[0].dims]
    return (*pars(op, rows), *(contracted(op, d) for d in _summed(op)))


def _refuses(op: Op) -> Mapping[str, str]:
    why = "a contiguous shard of all products together is the whole of one and nothing of another: run them apart"
    return dict.fromkeys((joint_label(op), *features(op)), why)


register(
    OpKind(
        name=JOINT,
        summary="products of one input, read once, their outputs side by side",
        cuts=_cuts,
        flops=_flops,
        refuses=_refuses,
        check=_check,
        check_sizes=_check_sizes,
    )
)
