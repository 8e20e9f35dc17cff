"""A chain of layers, cut into pipeline stages: the best contiguous partition under a plan, and lower bounds over all of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.errors import LimitReached
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.dual import Dual
from rooflang.extractors.footprint import Footprint
from rooflang.extractors.forms import Points, Weights
from rooflang.extractors.itself import Itself
from rooflang.extractors.layouts import BoolArray, FloatArray
from rooflang.extractors.pool import Pool
from rooflang.extractors.squeeze import priced
from rooflang.extractors.task import Decisions, Send, Stages, Task, sends_of
from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import Spec
from rooflang.place.grid import balanced, layer_labels, partition

#: Shares of C in the weights of the bound on max(C, N).
_SHARES = (0.5, 0.65, 0.8, 0.9, 0.999)

#: Where leaves may lie in slower memories: shares of C, and prices of a full HBM, as parts of the bound without them.
_DEAR_SHARES, _PRICES = (0.001, 0.05, 0.15, 0.3), (0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 15.0, 30.0)

#: Entries of a table at all points that are asked for together.
_ENTRIES = 32_000_000


#: C and N of a block of each kind, and what a plan holds.
_Known = tuple[Mapping[str, tuple[FloatArray, FloatArray]], Footprint]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """The layers of a graph in their order, to be cut into as many stages as `task` has.

    Layer i is what a stage runs that has just that layer, blocks that are no layers included. Tables have the shape
    (layers + 1, layers + 1): row i, column j is the stage of the layers i … j − 1. A `pool` may know what blocks take.
    """

    task: Task
    pool: Pool | None = None
    _plans: dict[int, tuple[Decisions, _Known]] = field(default_factory=dict)
    _sent: dict[object, FloatArray] = field(default_factory=dict)
    _floors: dict[tuple[Dual, int], FloatArray] = field(default_factory=dict)

    @property
    def costed(self) -> CostedGraph:
        return self.task.costed

    @property
    def _blocks(self) -> Itself[Blocks]:
        return Itself(self.costed.blocks)

    @property
    def layers(self) -> Stages:
        """The block labels of each layer."""
        return _layers(self._blocks)

    @property
    def counts(self) -> Mapping[str, FloatArray]:
        """For each kind of block how many there are before each layer, (layers + 1,)."""
        return _counts(self._blocks)

    @property
    def sends(self) -> tuple[tuple[Send, ...], ...]:
        """What has to be sent where the chain is cut after i layers; nothing at its ends."""
        return _sends(self._blocks)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The fabric level that each stage sends over; the last one sends nothing, and is given that of the others."""
        gpus, cluster = self.task.mesh.gpus, self.costed.cost.cluster
        last = len(self.task.stages) - 1
        names = [cluster.level_between(stage * gpus, (stage + 1) * gpus).name for stage in range(last)]
        return (*names, *names[-1:]) if names else ("",)

    def known(self, chosen: Decisions) -> _Known:
        """What is known of a plan whatever the partition, worked out once."""
        if id(chosen) not in self._plans:
            blocks = self.pool or Pool(costed=self.costed)
            seconds = {n: blocks.block_s(n, chosen.choices[n], chosen.boundary) for n in self.costed.kinds}
            self._plans[id(chosen)] = chosen, (seconds, Footprint.of(self.task, chosen))
        return self._plans[id(chosen)][1]

    def best(self, chosen: Decisions, at: int | None = None) -> tuple[float, tuple[int, ...]]:
        """The best partition under a plan that fits into memory, at the task's batch size or another one: its objective
        and the layers of each stage."""
        at = self.task.at if at is None else at
        seconds, held = self.known(chosen)
        local, exposed = (self._sums({n: float(pair[part][at]) for n, pair in seconds.items()}) for part in (0, 1))
        works_on = [np.where(self._present(name), float(each.works_on[at]), 0.0) for name, each in held.kinds.items()]
        rests = self._sums({name: float(each.rests[HBM][at]) for name, each in held.kinds.items()})
        fits = rests + np.max(works_on, axis=0) <= self.task.capacity_bytes
        tables: dict[str, FloatArray] = {}
        for stage, level in enumerate(self.levels):
            if level not in tables:
                sent = exposed + self._sends_s(stage, chosen.boundary)[None, :, at]
                value = np.maximum(local, sent) if self.task.objective == "max" else local + sent
                tables[level] = np.where(fits, value, np.inf)
        return cheapest([tables[level] for level in self.levels])

    def bound(self, found: Dual, limit: int) -> tuple[float, tuple[int, ...]]:
        """A lower bound on the objective over all partitions, plans and boundaries, and the layers of each stage in the
        partition that has it; 0 and an even partition where the dual has too many layouts, or a limit comes."""
        try:
            return cheapest(self.floors(found, limit))
        except LimitReached:
            return 0.0, balanced(len(self.layers), len(self.task.stages))

    def floors(self, found: Dual, limit: int) -> FloatArray:
        """Lower bounds on the objective of stages over all plans and boundaries, (stages, layers + 1, layers + 1).
        Raises `LimitReached` where the dual has too many layouts, or at a limit."""
        if (found, limit) not in self._floors:
            self._floors[found, limit] = self._all_floors(found, limit)
        return self._floors[found, limit]

    def _all_floors(self, found: Dual, limit: int) -> FloatArray:
        task = self.task
        shares = (0.5,) if task.objective == "sum" else _SHARES
        points = tuple((task.at, Weights(local=share, exposed=1.0 - share)) for share in shares)
        least = list(self._least(found, points, limit))
        if self.costed.spares:
            least += self._dear(found, cheapest(np.max(least, axis=0))[0], limit)
        return np.asarray(np.max(least, axis=0)) * (2.0 if task.objective == "sum" else 1.0)

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
        """For each point the least weighted costs of stages, (stages, layers + 1, layers + 1). Raises
        `LimitReached`."""
        together = max(1, _ENTRIES // limit)
        for first in range(0, len(points), together):
            some = points[first : first + together]
            values = dict[str, FloatArray]()
            for name in self.counts:
                self.task.check()
                values[name] = found.kind(name, some, limit).value
            for point, (at, weights) in enumerate(some):
                sums = self._sums({name: float(least[point].min()) for name, least in values.items()})
                sent = [weights.exposed * self._least_sends_s(stage)[:, at] for stage in range(len(self.task.stages))]
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

    def _sends_s(self, stage: int, boundary: Mapping[int, Spec]) -> FloatArray:
        """Seconds that a stage sends, by where it ends, (layers + 1, b)."""
        key = (self.levels[stage], tuple(boundary.get(group) for group in _groups(self._blocks)))
        if key not in self._sent:
            self._sent[key] = self._by_end(stage, lambda send: self.task.sends_s(send, boundary[send.group]))
        return self._sent[key]

    def _least_sends_s(self, stage: int) -> FloatArray:
        """As `_sends_s`, in the layout in which each port is sent fastest."""
        if self.levels[stage] not in self._sent:
            borders = self.costed.borders
            self._sent[self.levels[stage]] = self._by_end(
                stage, lambda send: np.min([self.task.sends_s(send, spec) for spec in borders[send.group]], axis=0)
            )
        return self._sent[self.levels[stage]]

    def _by_end(self, stage: int, seconds: Callable[[Send], FloatArray]) -> FloatArray:
        known: dict[tuple[int, int], FloatArray] = {}
        out = np.zeros((len(self.layers) + 1, len(self.costed.batches)))
        for end, sends in enumerate(self.sends):
            for send in sends:
                key = (send.group, id(send.tensor))
                if key not in known:
                    known[key] = seconds(replace(send, stage=stage))
                out[end] += known[key]
        return out


@lru_cache(maxsize=16)
def _layers(blocks: Itself[Blocks]) -> Stages:
    return partition(blocks.record, [1] * len(layer_labels(blocks.record)))


@lru_cache(maxsize=16)
def _counts(blocks: Itself[Blocks]) -> Mapping[str, FloatArray]:
    each = [blocks.record.counts(labels) for labels in _layers(blocks)]
    kinds = (kind.name for kind in blocks.record.kinds)
    return {kind: np.concatenate([[0.0], np.cumsum([counts[kind] for counts in each])]) for kind in kinds}


@lru_cache(maxsize=16)
def _sends(blocks: Itself[Blocks]) -> tuple[tuple[Send, ...], ...]:
    layers, out = _layers(blocks), list[tuple[Send, ...]]([()])
    for cut in range(1, len(layers)):
        halves = tuple(tuple(label for labels in part for label in labels) for part in (layers[:cut], layers[cut:]))
        out.append(sends_of(blocks.record, halves, 0))
    return (*out, ())


@lru_cache(maxsize=16)
def _groups(blocks: Itself[Blocks]) -> tuple[int, ...]:
    """The port groups that are sent where the chain is cut."""
    return tuple(sorted({send.group for sends in _sends(blocks) for send in sends}))


def cheapest(tables: Sequence[FloatArray] | FloatArray) -> tuple[float, tuple[int, ...]]:
    """The contiguous partition whose dearest stage is cheapest: that cost, and the layers of each stage.

    `tables[s][i, j]` is what stage s costs if it runs the layers i … j − 1.
    """
    size, tables = len(tables[0]), list(tables)
    empty = np.tri(size, k=0, dtype=bool)
    masked = {id(table): np.where(empty, np.inf, table) for table in tables}
    least = np.where(np.arange(size) == 0, 0.0, np.inf)
    came: list[np.ndarray] = []
    for number, table in enumerate(tables):
        worst = np.maximum(least[:, None], masked[id(table)])
        # Later stages need at least a layer each.
        worst[:, size - (len(tables) - 1 - number) :] = np.inf
        came.append(worst.argmin(axis=0))
        least = worst.min(axis=0)
    ends = [size - 1]
    for step in reversed(came):
        ends.append(int(step[ends[-1]]))
    ends.reverse()
    return float(least[-1]), tuple(after - before for before, after in pairwise(ends))
