"""Costs by structure: layers of other names and equal shapes are costed once, for all batch sizes in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rooflang.cost.alike import Alike
from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.cost.tiers import Tiers, with_tiers
from rooflang.extractors.layouts import Closure, FloatArray
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.tensor import Num, Tensor

BATCH = "batch"


class Pricing:
    """The costs of a `CostModel` as arrays of shape (b,), b the number of its batch sizes. It keeps what it
    computed."""

    def __init__(self, cost: CostModel) -> None:
        self.cost = cost
        self.batches = int(np.size(cost.sizes.get(BATCH, 1)))
        self._modes: dict[object, Cost] = {}
        self._seconds: dict[int, tuple[FloatArray, FloatArray]] = {}  # by id of a cost, which `_modes` keeps
        self._transfers: dict[object, FloatArray] = {}
        self._closures: dict[object, Closure] = {}
        self._bytes: dict[object, FloatArray] = {}
        self._alike = Alike(cost)

    def mode(self, mode: Mode, tiers: Tiers = ()) -> Cost:
        """The cost of a mode some of whose leaves lie in tiers."""
        key = (self._alike.op(mode.op), mode.choices, tiers)
        if key not in self._modes:
            near = with_tiers(self.mode(mode), mode, tiers, self.cost) if tiers else self.cost.mode(mode)
            self._modes[key] = near
        return self._modes[key]

    def seconds(self, mode: Mode, tiers: Tiers = ()) -> tuple[FloatArray, FloatArray]:
        """C and N of a mode some of whose leaves lie in tiers."""
        cost = self.mode(mode, tiers)
        if id(cost) not in self._seconds:
            self._seconds[id(cost)] = self.spread(cost.local_s), self.spread(cost.exposed_s)
        return self._seconds[id(cost)]

    def transfers_s(self, tensor: Tensor, transfers: Sequence[Transfer]) -> list[FloatArray]:
        """Network seconds of transfers; infinite where extents do not divide."""
        shape = self._alike.tensor(tensor)
        keys = [(shape, transfer.before, transfer.after) for transfer in transfers]
        fresh = {key: transfer for key, transfer in zip(keys, transfers) if key not in self._transfers}
        self._transfers.update(zip(fresh, self.cost.transfers_s(tensor, list(fresh.values()))))
        return [self._transfers[key] for key in keys]

    def closure(self, tensor: Tensor, specs: tuple[Spec, ...], steps: Mapping[tuple[int, int], Transfer]) -> Closure:
        """The closure of single transfers between `specs`, by their numbers."""
        key = (self._alike.tensor(tensor), specs, tuple(steps))
        if key not in self._closures:
            seconds = self.transfers_s(tensor, list(steps.values()))
            priced = ((i, j, each) for (i, j), each in zip(steps, seconds))
            self._closures[key] = Closure.of(len(specs), self.batches, priced)
        return self._closures[key]

    def bytes(self, tensor: Tensor, spec: Spec) -> FloatArray:
        """Bytes of a tensor on one rank."""
        key = (self._alike.tensor(tensor), spec)
        if key not in self._bytes:
            self._bytes[key] = self.spread(self.cost.bytes(tensor, spec))
        return self._bytes[key]

    def room_bytes(self, tensor: Tensor, spec: Spec) -> FloatArray:
        """As `bytes`; infinite where extents do not divide."""
        return np.where(self.cost.divides(self.cost.parts(spec)), self.bytes(tensor, spec), np.inf)

    def spread(self, quantity: Num) -> FloatArray:
        """A quantity as an array over batch sizes."""
        return np.broadcast_to(np.asarray(quantity, np.float64), (self.batches,))
