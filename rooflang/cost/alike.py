"""What costs the same: operators and tensors without their names."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.ir.op import Op
from rooflang.ir.tensor import Tensor


class Alike:
    """Keys that operators, or tensors, share under a cost model with that `partial_scale` if they cost the same."""

    def __init__(self, partial_scale: Mapping[str, float]) -> None:
        self._scale = partial_scale
        self._ops: dict[int, tuple[Op, object]] = {}

    def tensor(self, tensor: Tensor) -> object:
        """All of a tensor that its bytes depend on."""
        return (tensor.dims, tensor.dtype, tensor.role, tensor.fill, self._scale.get(tensor.name, 1.0))

    def op(self, op: Op) -> object:
        """All of an operator that its cost depends on: its record without names."""
        known = self._ops.get(id(op))
        if known is None:
            attrs = tuple((name, self.op(x) if isinstance(x, Op) else x) for name, x in op.attrs)
            tensors = tuple(self.tensor(t) for t in (*op.operands, op.output))
            known = self._ops[id(op)] = (op, (op.kind, attrs, op.peak, tensors))
        return known[1]
