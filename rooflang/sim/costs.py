"""Costs of lifted operators."""

from __future__ import annotations

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.place.lower import LiftedOp


class LiftedCosts:
    """The costs of a placed graph's operators. Layers of one kind share their modes and transfers, so that each is
    costed once."""

    def __init__(self, cost: CostModel) -> None:
        self.cost = cost
        self._known: dict[tuple[object, ...], Cost] = {}

    def of(self, lifted: LiftedOp) -> Cost:
        """The cost on one rank; infinite where extents do not divide."""
        # The plan holds its modes and transfers, so that their ids stay theirs; hashing them is far slower.
        shared = lifted.mode or lifted.transfer
        key = (id(shared), lifted.tensor.name, lifted.tiers) if shared else (lifted.tensor, lifted.write)
        if key not in self._known:
            self._known[key] = self._fresh(lifted)
        return self._known[key]

    def _fresh(self, lifted: LiftedOp) -> Cost:
        if lifted.mode is not None:
            return self.cost.mode(lifted.mode, lifted.tiers)
        if lifted.transfer is not None:
            return self.cost.transfer(lifted.tensor, lifted.transfer)
        return self.cost.send(lifted.tensor, lifted.write[1], lifted.stage)
