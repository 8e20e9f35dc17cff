"""A value that earlier steps have computed and kept: `recall` takes it, computed anew, and the cache that holds it.

The output is the first operand. The second one, a cache of the same dims to which this step has been appended, has to
hold the same values: that is the invariant of the cache, which every step keeps that appends what it computes. So a
step may read either: recompute, and then nothing is kept; or keep, and then nothing but the new entries is computed
(`rooflang.rules.remove_identity`).
"""

from __future__ import annotations

from rooflang.assumptions import Assumptions
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.rows import expect, expect_labels, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

RECALL = "recall"


def _check(op: Op) -> None:
    expect(op, 2)
    for tensor in op.operands:
        expect_labels(op, tensor.dims, op.output.dims, tensor.name)


def _cuts(op: Op) -> tuple[Cut, ...]:
    return tuple(pars(op, op.output.dims))


def _read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return 1.0 if index == 0 else 0.0


register(
    OpKind(
        name=RECALL,
        summary="a value, computed anew or kept in a cache; operands: what it is computed as, the cache",
        cuts=_cuts,
        read_fraction=_read,
        check=_check,
    )
)
