"""Products of one input side by side."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.joint import JOINT, features, joint_label
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, product


def _run(op: Op, where: Where, operands: Arrays) -> Array:
    dims, label = op.output.dims, joint_label(op)
    made = [
        product(operands[0], op.operands[0].dims, weight, tensor.dims, [own if d == label else d for d in dims])
        for weight, tensor, own in zip(operands[1:], op.operands[1:], features(op), strict=True)
    ]
    return np.concatenate(made, axis=dims.index(label))


define(JOINT, plain(_run))
