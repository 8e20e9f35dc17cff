"""Costs of lifted operators."""

from __future__ import annotations

from rooflang.cost.alike import Alike
from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.ir.tensor import Num
from rooflang.place.lower import LiftedOp


class LiftedCosts:
    """The costs of a placed graph's operators, each once: layers of one kind share their modes and transfers, and kinds
    of block have operators that differ in names only."""

    def __init__(self, cost: CostModel) -> None:
        self.cost = cost
        self._alike = Alike(cost.partial_scale)
        self._known: dict[object, Cost] = {}
        self._fresh: dict[object, Cost] = {}
        self._seconds: dict[int, tuple[Num, Num]] = {}

    def of(self, lifted: LiftedOp) -> Cost:
        """The cost on one rank; infinite where extents do not divide."""
        # The plan holds its modes and transfers, so that their ids stay theirs; hashing them is far slower.
        shared = lifted.mode or lifted.transfer
        key = (id(shared), lifted.tensor.name, lifted.tiers) if shared else (lifted.tensor, lifted.write)
        if key not in self._known:
            self._known[key] = self._cost(lifted)
        return self._known[key]

    def seconds(self, lifted: LiftedOp) -> tuple[Num, Num]:
        """Its local and exposed time on one rank."""
        cost = self.of(lifted)
        if id(cost) not in self._seconds:  # the tables keep every record, and so its id
            self._seconds[id(cost)] = cost.local_s, cost.exposed_s
        return self._seconds[id(cost)]

    def _cost(self, lifted: LiftedOp) -> Cost:
        mode, transfer = lifted.mode, lifted.transfer
        if mode is not None:
            key: object = (self._alike.op(mode.op), mode.choices, lifted.tiers)
            if key not in self._fresh:
                self._fresh[key] = self.cost.mode(mode, lifted.tiers)
        elif transfer is not None:
            key = (self._alike.tensor(lifted.tensor), transfer.before, transfer.after)
            if key not in self._fresh:
                self._fresh[key] = self.cost.transfer(lifted.tensor, transfer)
        else:
            return self.cost.send(lifted.tensor, lifted.write[1], lifted.stage)
        return self._fresh[key]
