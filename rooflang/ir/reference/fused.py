"""A fused operator is the composition of the two that it was made of."""

from __future__ import annotations

from rooflang.ir.kinds.fused import FUSIONS, parts, wiring
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, reference


def _run(op: Op, where: Where, operands: Arrays) -> Array:
    outer, inner, _ = parts(op)
    outside, inside = wiring(op)
    middle = reference(inner.kind).share(inner, where, *(operands[place] for place in inside))
    given = (middle if place < 0 else operands[place] for place in outside)
    return reference(outer.kind).share(outer, where, *given)


for _fusion in FUSIONS:
    define(_fusion.name, plain(_run))
