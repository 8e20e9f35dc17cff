"""Gates with those beyond an expert's capacity set to 0, tokens counted in the order of the operand's labels."""

from __future__ import annotations

import math

import numpy as np

from rooflang.ir.kinds.moe import expert_label
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread


def _run(op: Op, where: Where, operands: Arrays) -> Array:
    dims, expert = op.operands[0].dims, expert_label(op)
    tokens = tuple(d for d in dims if d != expert)
    gates = spread(operands[0], dims, (*tokens, expert))
    taken = (gates != 0).reshape(math.prod(gates.shape[:-1]), gates.shape[-1])
    before = np.cumsum(taken, axis=0) - taken
    kept = (before < op.attr("capacity")).reshape(gates.shape)
    return spread(gates * kept, (*tokens, expert), op.output.dims)


define("capped_gates", plain(_run))
