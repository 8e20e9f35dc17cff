"""One block of a kind on a stage, at many batch sizes at once: its time, and the memory that it needs while it runs.

Blocks of a kind do the same work. What tells them apart is around them: which of the values that they read has been
brought into another layout by an earlier block (`Passage`), which of theirs a later block reads (`Kept`), and which of
those that they read nobody reads after them (`Kept.peak`). A model has few cases of each, however many layers it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rooflang.cost.alike import Alike
from rooflang.cost.model import CostModel
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import Spec
from rooflang.ir.tensor import Tensor
from rooflang.place.lower import PlacedGraph, Value, lower_block
from rooflang.place.plan import BlockPlan, Plan
from rooflang.place.storage import storage, stored
from rooflang.sim.costs import LiftedCosts
from rooflang.sim.csr import BoolArray, FloatArray
from rooflang.sim.schedule import BATCH

#: A tensor in a spec, on the stage at hand.
Laid = tuple[str, Spec]

#: Where a value that lives longer ends within a block: its size by number, and the last place at which it is read.
Ending = tuple[int, int]


class Sizes:
    """Bytes of tensors on a rank, (b,), rounded as the engine's are, by number."""

    def __init__(self, cost: CostModel) -> None:
        self.cost = cost
        self.batches = np.atleast_1d(cost.sizes.get(BATCH, 1)).shape
        self.rows: list[FloatArray] = []
        self._numbers: dict[tuple[int, Spec], int] = {}
        self._alike = Alike(cost.partial_scale)
        self._first: dict[tuple[object, Spec], int] = {}

    def number(self, tensor: Tensor, spec: Spec) -> int:
        """The number of a tensor, which has to be one of the graph's, in a spec: that of the first one like it."""
        key = (id(tensor), spec)
        if key not in self._numbers:
            number = self._first.setdefault((self._alike.tensor(tensor), spec), len(self.rows))
            if number == len(self.rows):
                self.rows.append(np.rint(np.broadcast_to(self.cost.bytes(tensor, spec), self.batches)))
            self._numbers[key] = number
        return self._numbers[key]


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """A block some of whose values are read after it. Names are the representative's.

    `lies` says for each of these in whose memory it lies: that of a value of the block or of one that it reads, None
    where it takes no room. `begins` are the sizes of the block's own values that live on, `last` is where each value
    that the block reads from outside is read last.
    """

    lies: Mapping[Laid, Laid | None]
    begins: Mapping[Laid, int]
    last: Mapping[Laid, int]
    _sizes: Sizes
    _numbers: tuple[int, ...]
    _alive: BoolArray
    _peaks: dict[tuple[Ending, ...], FloatArray] = field(default_factory=dict)

    def peak(self, ends: tuple[Ending, ...]) -> FloatArray:
        """The peak (b,) of the block's own values together with those that end in it, beside what outlives it."""
        if ends not in self._peaks:
            self._peaks[ends] = self.held(ends).max(axis=0, initial=0.0)
        return self._peaks[ends]

    def held(self, ends: tuple[Ending, ...]) -> FloatArray:
        """What of these is there at each operator of the block, (places, b)."""
        places = np.arange(len(self._alive))[:, None]
        ending = places <= np.array([place for _, place in ends], np.int64)
        alive = np.hstack([self._alive, ending]).astype(np.float64)
        sizes = [self._sizes.rows[number] for number in (*self._numbers, *(number for number, _ in ends))]
        table = np.array(sizes).reshape(len(sizes), *self._sizes.batches)
        # Sizes are whole numbers below 2^53, so that their sums are exact in any order. Such small products are better
        # off without the threads that `@` would wait for.
        held: FloatArray = np.einsum("pv,vb->pb", alive, table)
        return held


@dataclass(frozen=True, kw_only=True, eq=False)
class Passage:
    """A block before which certain values have been made. Names are the representative's.

    `local_s` and `exposed_s` (b,) are its times, `levels` the links that it uses. `needs` are the values that it reads
    from outside, `makes` those that others may read; of `brought`, some may have been made by an earlier block that
    brings the same tensor into the same layout.
    """

    kind: str
    placed: PlacedGraph
    local_s: FloatArray
    exposed_s: FloatArray
    levels: frozenset[str]
    needs: tuple[Laid, ...]
    makes: tuple[Laid, ...]
    brought: tuple[Laid, ...]
    _sizes: Sizes
    _kept: dict[frozenset[Laid], Kept] = field(default_factory=dict)

    def input(self, laid: Laid) -> Tensor:
        """What a value is that the block reads from outside."""
        return self.placed.inputs[(*laid, 0)]

    def kept(self, outlasting: frozenset[Laid]) -> Kept:
        """The block if these of its values are read after it."""
        if outlasting not in self._kept:
            self._kept[outlasting] = self._with(outlasting)
        return self._kept[outlasting]

    def _with(self, outlasting: frozenset[Laid]) -> Kept:
        placed = replace(self.placed, outputs=frozenset((*laid, 0) for laid in outlasting))
        lies = storage(placed, receive_buffers=self._sizes.cost.assumptions.receive_buffers)
        last: dict[Value, int] = {}
        for place, op in enumerate(placed.ops):
            for home in (lies.get(value) for value in op.reads):
                if home is not None:
                    last[home] = place
        living = {lies[value] for value in placed.outputs}
        end = len(placed.ops) - 1
        first = {op.write: place for place, op in enumerate(placed.ops)}
        own = {value: tensor for value, tensor in stored(placed, lies).items() if value in first}
        numbers = {value: self._sizes.number(tensor, value[1]) for value, tensor in own.items()}
        spans = [(first[v], end if v in living else max(first[v], last.get(v, 0))) for v in own]
        places = np.arange(end + 1)[:, None]
        begin, cease = np.array(spans, np.int64).reshape(-1, 2).T
        return Kept(
            lies={value[:2]: None if (home := lies[value]) is None else home[:2] for value in placed.outputs},
            begins={value[:2]: number for value, number in numbers.items() if value in living},
            last={value[:2]: place for value, place in last.items() if value not in first},
            _sizes=self._sizes,
            _numbers=tuple(numbers.values()),
            _alive=(begin <= places) & (places <= cease),
        )


class BlockRuns:
    """The passages of the blocks of one kind under a plan. `whole` is the one before which nothing was brought."""

    def __init__(self, plan: Plan, blocks: Blocks, kind: BlockKind, costs: LiftedCosts, sizes: Sizes) -> None:
        self.kind = kind
        self.block: BlockPlan = plan.blocks[kind.name]
        self.inputs = tuple(tensor.name for tensor in kind.inputs)
        self.leaves = frozenset(tensor.name for tensor in kind.leaves)
        self.outputs = tuple(
            (tensor.name, self.block.source(tensor.name), plan.boundary[blocks.port_group[(kind.name, tensor.name)]])
            for tensor in kind.outputs
        )
        self._plan = plan
        self._blocks = blocks
        self._costs = costs
        self._sizes = sizes
        self._known: dict[frozenset[Laid], Passage] = {}
        self.whole = self.passage(frozenset())

    def passage(self, there: frozenset[Laid]) -> Passage:
        """The block where these values of `whole.brought` have been made before it."""
        if there not in self._known:
            self._known[there] = self._lowered(there)
        return self._known[there]

    def _lowered(self, there: frozenset[Laid]) -> Passage:
        tensors = {op.write: op.tensor for op in self.whole.placed.ops} if there else {}
        given = {(*laid, 0): tensors[(*laid, 0)] for laid in sorted(there)}
        placed = lower_block(self._plan, self._blocks, self.kind, given)
        local, exposed = np.zeros(self._sizes.batches), np.zeros(self._sizes.batches)
        levels: set[str] = set()
        for op in placed.ops:
            local_s, exposed_s = self._costs.seconds(op)
            local = local + local_s
            exposed = exposed + exposed_s
            levels.update(self._costs.of(op).levels_s)
        made = {op.write for op in placed.ops}
        arriving = {*self.inputs, *self.leaves}
        shared = arriving | {source for _, source, _ in self.outputs}
        return Passage(
            kind=self.kind.name,
            placed=placed,
            local_s=local,
            exposed_s=exposed,
            levels=frozenset(levels),
            needs=tuple(dict.fromkeys(value[:2] for op in placed.ops for value in op.reads if value not in made)),
            makes=tuple(op.write[:2] for op in placed.ops if op.write[0] in shared),
            brought=tuple(op.write[:2] for op in placed.ops if op.write[0] in arriving),
            _sizes=self._sizes,
        )
