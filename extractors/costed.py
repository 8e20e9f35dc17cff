"""Frozen blocks with their costs: what every extractor starts from.

Arrays have one column per batch size of the cost model. C is the local time of a mode (compute or memory), N the
network time that it does not hide; both in seconds on one rank. Impossible layouts cost infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.cost.tiers import HBM
from rooflang.eqsat import FrozenBlock
from rooflang.extractors.layouts import FloatArray, Layouts
from rooflang.extractors.outline import Draft, Outline, Outlines
from rooflang.extractors.pricing import BATCH, Pricing
from rooflang.extractors.resting import Resting
from rooflang.extractors.shape import CostedMode, Shape
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import Spec
from rooflang.ir.tensor import Num, Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Value:
    """A value of a block (`rooflang.extractors.shape.Slot`) with what its layouts cost.

    `bytes` (layouts, b) is what it occupies on a rank, which is nothing beside resident leaves where a kernel makes it
    by writing into one: `in_place` says that some of those that make it do.
    """

    tensor: Tensor
    layouts: Layouts
    bytes: FloatArray
    in_place: bool = False
    port: int = -1
    exits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class CostedKind:
    """One kind of block. `local_s` and `exposed_s` have the shape (modes, b).

    `leaf_bytes[leaf, spec]` (b,) is what a leaf occupies at rest.
    """

    shape: Shape
    values: tuple[Value, ...]
    local_s: FloatArray
    exposed_s: FloatArray
    leaf_bytes: Mapping[tuple[str, Spec], FloatArray]

    @property
    def kind(self) -> BlockKind:
        return self.shape.kind

    @property
    def modes(self) -> tuple[CostedMode, ...]:
        return self.shape.modes

    @property
    def aliases(self) -> Mapping[str, str]:
        """The identities that are left out, as in `BlockPlan`."""
        return self.shape.aliases

    @property
    def leaf(self) -> Mapping[str, Tensor]:
        """Leaves by name."""
        return self.shape.leaf

    @property
    def common_leaves(self) -> frozenset[str]:
        """Leaves that several kernels of one plan of the block may read."""
        return self.shape.common_leaves

    @property
    def makers(self) -> tuple[tuple[int, ...], ...]:
        """For each value the numbers of the modes that make it."""
        return self.shape.makers

    def gathered_bytes(self, mode: CostedMode, at: int | slice) -> Num:
        """What the weights that are gathered for a kernel occupy while it runs."""
        gathers = (read for read in mode.leaves if read.gather is not None)
        return sum(self.leaf_bytes[read.leaf, mode.mode.operands[read.operand]][at] for read in gathers)


@dataclass(frozen=True, kw_only=True, eq=False)
class CostedGraph:
    """All kinds of block of a graph under one cost model. `batches` are its batch sizes, `tiers` the memories in which
    leaves may rest.

    `borders[group]` are the layouts in which every block kind can hand over or take the ports of that group.
    """

    blocks: Blocks
    cost: CostModel
    batches: tuple[int, ...]
    kinds: Mapping[str, CostedKind]
    borders: Mapping[int, tuple[Spec, ...]]
    tiers: tuple[str, ...] = (HBM,)

    @cached_property
    def spares(self) -> bool:
        """Is there a choice of how leaves rest, so that a plan may take less of HBM than its kernels read?"""
        kinds = self.kinds.values()
        return len(self.tiers) > 1 or any(r.gather for kind in kinds for mode in kind.modes for r in mode.leaves)

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        frozen: Mapping[str, FrozenBlock],
        cost: CostModel,
        *,
        tiers: tuple[str, ...] = (HBM,),
    ) -> CostedGraph:
        """Cost every mode and transfer, with leaves in any of the memories `tiers`. The extent `batch` of the model may
        be an array of batch sizes.

        Raises `PlacementError` when two kinds of block have no layout in common for what passes between them.
        """
        outlines = Outlines.of(blocks, frozen, cost.partial_scale, tiers)
        pricing = Pricing(cost, outlines.modes)
        return cls(
            blocks=blocks,
            cost=cost,
            batches=tuple(int(b) for b in np.atleast_1d(cost.sizes.get(BATCH, 1))),
            kinds={name: _costed(outline, pricing, tiers) for name, outline in outlines.kinds.items()},
            borders=outlines.borders,
            tiers=tiers,
        )


def _costed(outline: Outline, pricing: Pricing, tiers: tuple[str, ...]) -> CostedKind:
    if outline.plain:
        local, exposed = (table[outline.prices] for table in pricing.table)
        can_run = np.asarray(np.isfinite(local).any(axis=1))
        shape = outline.that_can_run(can_run)
        local, exposed = local[can_run], exposed[can_run]
    else:
        drafts, local, exposed = _drafts(outline, pricing, tiers)
        shape = outline.shape(drafts)
    return CostedKind(
        shape=shape,
        values=tuple(
            Value(
                tensor=slot.tensor,
                layouts=Layouts(places=slot.places, closure=pricing.closure(slot)),
                bytes=pricing.layout_bytes(slot),
                in_place=slot.in_place,
                port=slot.port,
                exits=slot.exits,
            )
            for slot in shape.values
        ),
        local_s=local,
        exposed_s=exposed,
        leaf_bytes={(held.leaf.name, held.spec): pricing.held_bytes(held) for held in shape.held},
    )


def _drafts(outline: Outline, pricing: Pricing, tiers: tuple[str, ...]) -> tuple[list[Draft], FloatArray, FloatArray]:
    """The modes of a block with their leaves wherever they may lie, without those that can never run, and C and N of
    each, (modes, b)."""
    sizes = pricing.room_bytes
    resting = Resting.of(outline.blocks, outline.block, outline.names, tiers, sizes, pricing.cost.mesh.gpus)
    found = list(_priced(outline, resting, pricing))
    local, exposed = (np.array([each[part] for each in found]).reshape(len(found), pricing.batches) for part in (1, 2))
    return [draft for draft, _, _ in found], local, exposed


def _priced(outline: Outline, resting: Resting, pricing: Pricing) -> Iterator[tuple[Draft, FloatArray, FloatArray]]:
    for run in outline.runs:
        operands = run.mode.op.operands
        for where in resting.where(run.mode):
            leaf_of = [outline.names.leaf_of(t.name)[0] for t in operands] if where else []
            rests = [(index, where[leaf]) for index, leaf in enumerate(leaf_of) if leaf in where]
            far = tuple((index, rest.tier) for index, rest in rests if rest.tier != HBM)
            local, exposed = pricing.seconds(run.price, far)
            for index, rest in rests:
                if rest.gather is not None:
                    exposed = exposed + pricing.transfers_s(operands[index], [rest.gather])[0]
            if np.any(np.isfinite(local)):
                yield Draft(run=run, where=where), local, exposed
