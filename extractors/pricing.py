"""Costs by structure: layers of other names and equal shapes are costed once, for all batch sizes in one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from rooflang.cost.alike import Alike
from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.cost.tiers import Tiers, with_tiers
from rooflang.extractors.layouts import Closure, FloatArray
from rooflang.extractors.shape import Held, Slot
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.tensor import Num, Tensor

BATCH = "batch"


class Pricing:
    """The costs of a `CostModel` as arrays of shape (b,), b the number of its batch sizes. `modes` are one of each
    price. It keeps what it computed."""

    def __init__(self, cost: CostModel, modes: Sequence[Mode]) -> None:
        self.cost, self._modes = cost, modes
        self.batches = int(np.size(cost.sizes.get(BATCH, 1)))
        self._near: dict[int, Cost] = {}
        self._seconds: dict[tuple[int, Tiers], tuple[FloatArray, FloatArray]] = {}
        self._transfers: dict[object, FloatArray] = {}
        self._closures: dict[int, Closure] = {}
        self._layout_bytes: dict[int, FloatArray] = {}
        self._held_bytes: dict[int, FloatArray] = {}
        self._alike = Alike(cost.partial_scale)

    @cached_property
    def table(self) -> tuple[FloatArray, FloatArray]:
        """C and N of all modes by their prices, (prices, b), with leaves in HBM."""
        costs = [self.cost.mode(mode) for mode in self._modes]
        shape = (len(costs), self.batches)
        local, exposed = np.empty(shape), np.empty(shape)
        for number, cost in enumerate(costs):
            local[number], exposed[number] = cost.local_s, cost.exposed_s
        return local, exposed

    def seconds(self, price: int, tiers: Tiers = ()) -> tuple[FloatArray, FloatArray]:
        """C and N of a mode by its price, some of whose leaves lie in tiers."""
        key = (price, tiers)
        if key not in self._seconds:
            mode = self._modes[price]
            if price not in self._near:
                self._near[price] = self.cost.mode(mode)
            near = self._near[price]
            cost = with_tiers(near, mode, tiers, self.cost) if tiers else near
            self._seconds[key] = self.spread(cost.local_s), self.spread(cost.exposed_s)
        return self._seconds[key]

    def transfers_s(self, tensor: Tensor, transfers: Sequence[Transfer]) -> list[FloatArray]:
        """Network seconds of transfers; infinite where extents do not divide."""
        shape = self._alike.tensor(tensor)
        keys = [(shape, transfer.before, transfer.after) for transfer in transfers]
        fresh = {key: transfer for key, transfer in zip(keys, transfers) if key not in self._transfers}
        self._transfers.update(zip(fresh, self.cost.transfers_s(tensor, list(fresh.values()))))
        return [self._transfers[key] for key in keys]

    def closure(self, slot: Slot) -> Closure:
        """The closure of single transfers between the layouts of a value."""
        if slot.alike not in self._closures:
            steps = slot.places.steps
            seconds = self.transfers_s(slot.tensor, list(steps.values()))
            priced = ((i, j, each) for (i, j), each in zip(steps, seconds))
            self._closures[slot.alike] = Closure.of(len(slot.places.specs), self.batches, priced)
        return self._closures[slot.alike]

    def layout_bytes(self, slot: Slot) -> FloatArray:
        """Bytes of a value on one rank by layout, (layouts, b)."""
        if slot.alike not in self._layout_bytes:
            sizes = [self.bytes(slot.tensor, spec) for spec in slot.places.specs]
            self._layout_bytes[slot.alike] = np.array(sizes).reshape(len(sizes), self.batches)
        return self._layout_bytes[slot.alike]

    def held_bytes(self, held: Held) -> FloatArray:
        """Bytes of a leaf at rest on one rank."""
        if held.alike not in self._held_bytes:
            self._held_bytes[held.alike] = self.bytes(held.leaf, held.spec)
        return self._held_bytes[held.alike]

    def bytes(self, tensor: Tensor, spec: Spec) -> FloatArray:
        """Bytes of a tensor on one rank."""
        return self.spread(self.cost.bytes(tensor, spec))

    def room_bytes(self, tensor: Tensor, spec: Spec) -> FloatArray:
        """As `bytes`; infinite where extents do not divide."""
        return np.where(self.cost.fits(spec), self.bytes(tensor, spec), np.inf)

    def spread(self, quantity: Num) -> FloatArray:
        """A quantity as an array over batch sizes."""
        return np.broadcast_to(np.asarray(quantity, np.float64), (self.batches,))
