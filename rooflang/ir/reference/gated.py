"""Gated activations."""

from __future__ import annotations

import numpy as np

from rooflang.ir.exact import settled
from rooflang.ir.kinds.gated import GATES
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread
from rooflang.ir.reference.elementwise import activated, sigmoid

#: Where gpt-oss clamps both halves, and how steep its sigmoid is (`swiglu_limit` of its config, `alpha` of its code).
LIMIT, STEEPNESS = 7.0, 1.702


def gated(op: Op, gate: Array, up: Array) -> Array:
    """f(gate) · up with the operator's `function`."""
    function = str(op.attr("function", GATES[0]))
    if function != "swiglu_oai":
        return np.asarray(activated(function, gate) * up)
    clamped = np.minimum(gate, LIMIT), np.maximum(np.minimum(up, LIMIT), -LIMIT)
    gate, up = settled(clamped, (gate, up))
    return np.asarray(gate * sigmoid(STEEPNESS * gate) * (up + 1.0))


def _run(op: Op, where: Where, operands: Arrays) -> Array:
    gate, up = (spread(a, t.dims, op.output.dims) for a, t in zip(operands, op.operands, strict=True))
    return gated(op, gate, up)


define("gated_activation", plain(_run))
