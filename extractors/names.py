"""Which tensors of a block are one value, and which are leaves."""

from __future__ import annotations

from rooflang.eqsat import FrozenBlock
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import Tensor


class Names:
    """The tensors of a frozen block by the name of the first one that is equal (identities between them removed).

    `names[tensor]` is that name, `number` numbers the values that the block makes or takes in, `tensors` are their
    records. `removed` are the identities that are left out: output → operand.
    """

    def __init__(self, block: FrozenBlock) -> None:
        kind = block.kind
        leaves = {t.name for t in kind.leaves}
        leaving = {t.name for t in kind.outputs}
        #: A copy of a leaf that leaves the block has to be made: nothing else puts the leaf's value there.
        self.first = {
            name: name if first in leaves and name in leaving else first for name, first in block.aliases.items()
        }
        self.removed = {
            op.output.name: op.operands[0].name
            for op in kind.ops
            if op.operands and self[op.output.name] == self[op.operands[0].name]
        }
        made = {op.output.name: op.output for op in kind.ops}
        arriving = {t.name: t for t in kind.inputs}
        self.tensors = {self[n]: t for n, t in (*arriving.items(), *made.items()) if self[n] == n}
        self.number = {name: index for index, name in enumerate(self.tensors)}
        self._leaves = {t.name: t for t in kind.leaves}
        self._written: dict[str, str] = {}
        self._homes: dict[str, tuple[str, bool]] = {}
        for op in kind.ops:
            place = op_kind(op.kind).in_place
            if place is not None:
                self._written[self[op.output.name]] = self[op.operands[place].name]

    def __getitem__(self, name: str) -> str:
        return self.first.get(name, name)

    def leaf(self, tensor: Tensor) -> Tensor:
        """The leaf that `tensor` is, or is a removed copy of."""
        return self._leaves[self[tensor.name]]

    def leaf_of(self, name: str) -> tuple[str, bool]:
        """The leaf in whose memory a tensor lies that stays between steps, and: is it the leaf itself, and not what was
        written into it in place? An empty name for other tensors."""
        if name not in self._homes:
            first, direct = self[name], True
            while first in self._written:
                first, direct = self._written[first], False
            self._homes[name] = (first, direct) if first in self._leaves else ("", direct)
        return self._homes[name]
