"""A chain of layers, cut into pipeline stages: the best contiguous partition under a plan, and lower bounds over all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from rooflang.errors import LimitReached
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.dual import Dual
from rooflang.extractors.forms import Points, Weights
from rooflang.extractors.layouts import BoolArray, FloatArray
from rooflang.extractors.memory import block_use
from rooflang.extractors.plans import block_s
from rooflang.extractors.squeeze import priced
from rooflang.extractors.task import Decisions, Send, Stages, Task
from rooflang.ir.cut import Spec
from rooflang.place.grid import balanced, layer_labels, partition

#: Shares of C in the weights of the bound on max(C, N).
_SHARES = (0.5, 0.65, 0.8, 0.9, 0.999)

#: Where leaves may lie in slower memories: shares of C, and prices of a full HBM, as parts of the bound without them.
_DEAR_SHARES, _PRICES = (0.001, 0.05, 0.15, 0.3), (0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 15.0, 30.0)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The layers of a graph in their order, to be cut into as many stages as `task` has.

    Layer i is what a stage runs that has just that layer, blocks that are no layers included. Tables have the shape
    (layers + 1, layers + 1): row i, column j is the stage of the layers i … j − 1.
    """

    task: Task

    @property
    def costed(self) -> CostedGraph:
        return self.task.costed

    @cached_property
    def layers(self) -> Stages:
        """The block labels of each layer."""
        return partition(self.costed.blocks, [1] * len(layer_labels(self.costed.blocks)))

    @cached_property
    def counts(self) -> dict[str, FloatArray]:
        """For each kind of block how many there are before each layer, (layers + 1,)."""
        blocks = self.costed.blocks
        each = [blocks.counts(labels) for labels in self.layers]
        return {
            kind: np.concatenate([[0.0], np.cumsum([counts[kind] for counts in each])]) for kind in self.costed.kinds
        }

    @cached_property
    def sends(self) -> tuple[tuple[Send, ...], ...]:
        """What has to be sent where the chain is cut after i layers; nothing at its ends."""
        out: list[tuple[Send, ...]] = [()]
        for cut in range(1, len(self.layers)):
            halves = tuple(
                tuple(label for labels in part for label in labels) for part in (self.layers[:cut], self.layers[cut:])
            )
            out.append(replace(self.task, stages=halves).loads[0].sends)
        return (*out, ())

    def best(self, chosen: Decisions) -> tuple[float, tuple[int, ...]]:
        """The best partition under a plan that fits into memory: its objective and the layers of each stage."""
        task = self.task
        kinds = self.costed.kinds
        seconds = {n: block_s(kind, chosen.choices[n], chosen.boundary) for n, kind in kinds.items()}
        uses = {n: block_use(task, kind, chosen.choices[n]) for n, kind in kinds.items()}
        local, exposed = (self._sums({n: float(pair[part][task.at]) for n, pair in seconds.items()}) for part in (0, 1))
        live = np.max([np.where(self._present(name), use[1], 0.0) for name, use in uses.items()], axis=0)
        fits = self._sums({name: use[0] for name, use in uses.items()}) + live <= task.capacity_bytes
        tables = []
        for stage in range(len(task.stages)):
            sent = exposed + self._send_s(stage, chosen.boundary)[None, :]
            value = np.maximum(local, sent) if task.objective == "max" else local + sent
            tables.append(np.where(fits, value, np.inf))
        return cheapest(tables)

    def bound(self, found: Dual, limit: int) -> tuple[float, tuple[int, ...]]:
        """A lower bound on the objective over all partitions, plans and boundaries, and the layers of each stage in the
        partition that has it; 0 and an even partition where the dual has too many layouts."""
        task = self.task
        shares = (0.5,) if task.objective == "sum" else _SHARES
        points = tuple((task.at, Weights(local=share, exposed=1.0 - share)) for share in shares)
        try:
            least = list(self._least(found, points, limit))
            if self.costed.spares:
                least += self._dear(found, cheapest(np.max(least, axis=0))[0], limit)
            value, counts = cheapest(np.max(least, axis=0))
        except LimitReached:
            return 0.0, balanced(len(self.layers), len(task.stages))
        return value * (2.0 if task.objective == "sum" else 1.0), counts

    def _dear(self, found: Dual, unit_s: float, limit: int) -> list[FloatArray]:
        """As `_least`, for plans that fit into memory: under prices of it, less the prices (see `squeeze`)."""
        shares = (0.5,) if self.task.objective == "sum" else _DEAR_SHARES
        prices_s = [unit_s * price for price in _PRICES for _ in shares]
        weights = [
            priced(self.task, local=share, exposed=1.0 - share, price=price_s)
            for share, price_s in zip(shares * len(_PRICES), prices_s)
        ]
        points = tuple((self.task.at, each) for each in weights)
        return [tables - price_s for tables, price_s in zip(self._least(found, points, limit), prices_s)]

    def bounds(self, found: Dual, points: Points, limit: int) -> list[float]:
        """For each of several points the least weighted cost of the slowest stage, over all partitions."""
        return [cheapest(tables)[0] for tables in self._least(found, points, limit)]

    def _least(self, found: Dual, points: Points, limit: int) -> Iterator[FloatArray]:
        """For each point the least weighted costs of stages, (stages, layers + 1, layers + 1)."""
        values = {name: found.kind(name, points, limit).value for name in self.counts}
        for point, (at, weights) in enumerate(points):
            sums = self._sums({name: float(least[point].min()) for name, least in values.items()})
            sent = [weights.exposed * self._least_send_s(stage, at) for stage in range(len(self.task.stages))]
            yield np.array([sums + each[None, :] for each in sent])

    def _sums(self, amounts: dict[str, float]) -> FloatArray:
        """A table of sums over the blocks of each stage; infinite everywhere where an amount is."""
        if np.isinf(list(amounts.values())).any():
            return np.full((len(self.layers) + 1,) * 2, np.inf)
        before = sum((amounts[name] * counts for name, counts in self.counts.items()), np.zeros(len(self.layers) + 1))
        return np.asarray(before[None, :] - before[:, None])

    def _present(self, name: str) -> BoolArray:
        """Does a stage have blocks of a kind?"""
        return np.asarray(self.counts[name][None, :] > self.counts[name][:, None])

    def _send_s(self, stage: int, boundary: Mapping[int, Spec]) -> FloatArray:
        """Seconds that a stage sends, by where it ends."""
        return np.array([
            sum(self.task.send_s(replace(send, stage=stage), boundary[send.group]) for send in sends)
            for sends in self.sends
        ])  # fmt: skip

    def _least_send_s(self, stage: int, at: int) -> FloatArray:
        """As `_send_s`, in the layout in which each port is sent fastest."""
        task = replace(self.task, at=at)
        return np.array([
            sum(
                min(task.send_s(replace(send, stage=stage), spec) for spec in self.costed.borders[send.group])
                for send in sends
            )
            for sends in self.sends
        ])  # fmt: skip


def cheapest(tables: Sequence[FloatArray] | FloatArray) -> tuple[float, tuple[int, ...]]:
    """The contiguous partition whose dearest stage is cheapest: that cost, and the layers of each stage.

    `tables[s][i, j]` is what stage s costs if it runs the layers i … j − 1.
    """
    size = len(tables[0])
    least = np.where(np.arange(size) == 0, 0.0, np.inf)
    came: list[np.ndarray] = []
    for number, table in enumerate(tables):
        worst = np.maximum(least[:, None], np.where(np.tri(size, k=0, dtype=bool), np.inf, table))
        # Later stages need at least a layer each.
        worst[:, size - (len(tables) - 1 - number) :] = np.inf
        came.append(worst.argmin(axis=0))
        least = worst.min(axis=0)
    ends = [size - 1]
    for step in reversed(came):
        ends.append(int(step[ends[-1]]))
    ends.reverse()
    return float(least[-1]), tuple(after - before for before, after in pairwise(ends))
