"""A fused operator is the composition of the two that it was made of."""

from __future__ import annotations

from rooflang.ir.kinds.fused import FUSIONS, parts
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, reference


def _run(op: Op, where: Where, operands: Arrays) -> Array:
    outer, inner, at = parts(op)
    end = at + len(inner.operands)
    middle = reference(inner.kind).share(inner, where, *operands[at:end])
    return reference(outer.kind).share(outer, where, *operands[:at], middle, *operands[end:])


for _fusion in FUSIONS:
    define(_fusion.name, plain(_run))
