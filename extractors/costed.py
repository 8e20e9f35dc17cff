"""Frozen blocks with their costs: what every extractor starts from.

Arrays have one column per batch size of the cost model. C is the local time of a mode (compute or memory), N the
network time that it does not hide; both in seconds on one rank. Impossible layouts cost infinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.cost.tiers import HBM
from rooflang.eqsat import FrozenBlock
from rooflang.errors import PlacementError
from rooflang.extractors.layouts import FloatArray, Layouts
from rooflang.extractors.names import Names
from rooflang.extractors.pricing import BATCH, Pricing
from rooflang.extractors.resting import AS_READ, Kernel, Rest, Resting, once_made, shared_leaves
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import OWNER, REPLICATED, Spec
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import RESIDENT_ROLES, Num, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Operand `operand` of a kernel: value number `value` of its block, in layout number `layout`."""

    operand: int
    value: int
    layout: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRead:
    """Operand `operand` of a kernel: a weight, cache or state at rest in layout `spec`, in memory `tier`. A weight
    may be gathered from there for the kernel, into a buffer beside what rests."""

    operand: int
    leaf: str
    spec: Spec
    tier: str = HBM
    gather: Transfer | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Value:
    """Tensors of one block that are equal (identities between them removed), under the name of the first one.

    `port` is the port group that it arrives by, -1 if the block makes it. `exits` are the output ports that it leaves
    by, with their port groups. `bytes` (layouts, b) is what it occupies on a rank, which is nothing beside resident
    leaves where a kernel makes it by writing into one: `in_place` says that some of those that make it do.
    """

    tensor: Tensor
    layouts: Layouts
    bytes: FloatArray
    in_place: bool = False
    port: int = -1
    exits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostedMode:
    """A mode by numbers: it makes `value` in layout `out` from `reads` and `leaves`."""

    mode: Mode
    value: int
    out: int
    reads: tuple[Read, ...]
    leaves: tuple[LeafRead, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class CostedKind:
    """One kind of block. `local_s` and `exposed_s` have the shape (modes, b).

    `leaf_bytes[leaf, spec]` (b,) is what a leaf occupies at rest. `aliases` are the identities that are left out, as in
    `BlockPlan`.
    """

    kind: BlockKind
    values: tuple[Value, ...]
    modes: tuple[CostedMode, ...]
    local_s: FloatArray
    exposed_s: FloatArray
    leaf_bytes: Mapping[tuple[str, Spec], FloatArray]
    aliases: Mapping[str, str]

    def gathered_bytes(self, mode: CostedMode, at: int | slice) -> Num:
        """What the weights that are gathered for a kernel occupy while it runs."""
        gathers = (read for read in mode.leaves if read.gather is not None)
        return sum(self.leaf_bytes[read.leaf, mode.mode.operands[read.operand]][at] for read in gathers)

    @cached_property
    def leaf(self) -> dict[str, Tensor]:
        """Leaves by name."""
        return {t.name: t for t in self.kind.leaves}

    @cached_property
    def common_leaves(self) -> frozenset[str]:
        """Leaves that several kernels of one plan of the block may read."""
        name = [value.tensor.name for value in self.values]
        kernels = {
            Kernel(
                value=name[mode.value],
                values=frozenset(name[read.value] for read in mode.reads),
                leaves=frozenset(read.leaf for read in mode.leaves),
            )
            for mode in self.modes
        }
        return shared_leaves(kernels, {value.tensor.name for value in self.values if value.exits})

    @cached_property
    def makers(self) -> tuple[tuple[int, ...], ...]:
        """For each value the numbers of the modes that make it."""
        out: list[list[int]] = [[] for _ in self.values]
        for number, mode in enumerate(self.modes):
            out[mode.value].append(number)
        return tuple(map(tuple, out))


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
        pricing = Pricing(cost)
        borders = _borders(blocks, frozen)
        return cls(
            blocks=blocks,
            cost=cost,
            batches=tuple(int(b) for b in np.atleast_1d(cost.sizes.get(BATCH, 1))),
            kinds={kind.name: _costed(blocks, frozen[kind.name], pricing, borders, tiers) for kind in blocks.kinds},
            borders=borders,
            tiers=tiers,
        )


def _borders(blocks: Blocks, frozen: Mapping[str, FrozenBlock]) -> dict[int, tuple[Spec, ...]]:
    found: dict[int, tuple[Spec, ...]] = {}
    for kind in blocks.kinds:
        block = frozen[kind.name]
        arrivals: dict[str, list[Spec]] = {}
        for arrival in block.arrivals:
            arrivals.setdefault(arrival.port, []).append(arrival.spec)
        for port in (*kind.inputs, *kind.outputs):
            group = blocks.port_group[(kind.name, port.name)]
            for table in (arrivals, block.exits):
                if port.name in table:
                    allowed = set(table[port.name])
                    found[group] = tuple(s for s in found.get(group, table[port.name]) if s in allowed)
            if not found.get(group):
                raise PlacementError(f"no layout of {port.name} suits all blocks that hand it over or take it",
                                     where=kind.name)  # fmt: skip
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A mode whose leaves rest as `where` says, with its costs (b,)."""

    mode: Mode
    where: Mapping[str, Rest]
    local_s: FloatArray
    exposed_s: FloatArray

    def rest(self, leaf: str) -> Rest:
        """How a leaf rests."""
        return self.where.get(leaf, AS_READ)

    def tier(self, tensor: Tensor, names: Names) -> str:
        """The memory in which a tensor of the mode lies."""
        return self.rest(names.leaf_of(tensor.name)[0]).tier if self.where else HBM


def _costed(
    blocks: Blocks,
    block: FrozenBlock,
    pricing: Pricing,
    borders: Mapping[int, tuple[Spec, ...]],
    tiers: tuple[str, ...],
) -> CostedKind:
    names = Names(block)
    if tiers != (HBM,) or any(step.tensor not in names.number for step in block.transfers):
        block = once_made(block, names)
    resting = Resting.of(blocks, block, names, tiers, pricing.room_bytes, pricing.cost.mesh.gpus)
    owners = _owners_needed(block.modes)
    drafts = [draft for mode in block.modes for draft in _drafts(mode, names, resting, pricing, owners)]
    values = _values(blocks, block, resting, drafts, pricing, borders, owners)
    shape = (len(drafts), pricing.batches)
    held = {(leaf.name, spec): pricing.bytes(leaf, spec) for draft in drafts
            for _, leaf, read in _leaf_reads(draft.mode, names)
            for gather in [draft.rest(leaf.name).gather]
            for spec in ([read] if gather is None else [read, gather.before])}  # fmt: skip
    return CostedKind(
        kind=block.kind,
        values=values,
        modes=tuple(_numbered(draft, names, values) for draft in drafts),
        local_s=np.array([draft.local_s for draft in drafts]).reshape(shape),
        exposed_s=np.array([draft.exposed_s for draft in drafts]).reshape(shape),
        leaf_bytes=held,
        aliases=names.removed,
    )


def _drafts(mode: Mode, names: Names, resting: Resting, pricing: Pricing, owners: bool) -> Iterator[_Draft]:
    """The mode with its leaves in each memory in which they may lie, unless it can never run."""
    if OWNER in mode.choices and not owners:
        return
    if any(names[t.name] == names[mode.op.output.name] for t in mode.op.operands):
        return
    for where in resting.where(mode):
        leaf_of = [names.leaf_of(t.name)[0] for t in mode.op.operands] if where else []
        lies = [(index, where[leaf].tier) for index, leaf in enumerate(leaf_of) if leaf in where]
        local, exposed = pricing.seconds(mode, tuple((index, tier) for index, tier in lies if tier != HBM))
        for index, leaf in enumerate(leaf_of):
            gather = where[leaf].gather if leaf in where else None
            if gather is not None:
                exposed = exposed + pricing.transfers_s(mode.op.operands[index], [gather])[0]
        if np.any(np.isfinite(local)):
            yield _Draft(mode=mode, where=where, local_s=local, exposed_s=exposed)


def _leaf_reads(mode: Mode, names: Names) -> Iterator[tuple[int, Tensor, Spec]]:
    """Operands, by number, that are resident leaves or removed copies of such."""
    for index, (tensor, spec) in enumerate(zip(mode.op.operands, mode.operands, strict=True)):
        if names[tensor.name] not in names.number and names.leaf(tensor).role in RESIDENT_ROLES:
            yield index, names.leaf(tensor), spec


def _owners_needed(modes: Iterable[Mode]) -> bool:
    """Are modes worth a column in which only an axis' first coordinate runs?

    The owner works as long as every replica would, and others have to be sent the result: where each such mode has a
    twin that runs replicated, replacing all of them keeps C, drops broadcasts from N, and changes no rank's peak. So
    they are dominated, unless rules were disabled and a twin is missing.
    """
    keys = {_key(mode) for mode in modes}
    return any(_key(mode, replicate=True) not in keys for mode in modes if OWNER in mode.choices)


def _key(mode: Mode, *, replicate: bool = False) -> object:
    specs = (*mode.operands, mode.out)
    if replicate:
        specs = tuple(tuple(REPLICATED if entry == OWNER else entry for entry in spec) for spec in specs)
    return (mode.op.name, mode.op.kind, specs)


def _values(
    blocks: Blocks,
    block: FrozenBlock,
    resting: Resting,
    drafts: Iterable[_Draft],
    pricing: Pricing,
    borders: Mapping[int, tuple[Spec, ...]],
    owners: bool,
) -> tuple[Value, ...]:
    kind, names = block.kind, resting.names
    places: dict[str, dict[tuple[Spec, str], None]] = {name: {} for name in names.tensors}
    steps: dict[str, list[Transfer]] = {name: [] for name in names.tensors}
    for draft in drafts:
        mode = draft.mode
        for tensor, spec in zip((*mode.op.operands, mode.op.output), (*mode.operands, mode.out)):
            if names[tensor.name] in places:
                places[names[tensor.name]][spec, draft.tier(tensor, names)] = None
    for transfer in block.transfers:
        name = names[transfer.tensor]
        if name in places and (owners or OWNER not in (*transfer.before, *transfer.after)):
            places[name].update({(transfer.before, HBM): None, (transfer.after, HBM): None})
            steps[name].append(transfer)
    exits: dict[str, list[tuple[str, int]]] = {}
    for port in (*kind.inputs, *kind.outputs):
        group = blocks.port_group[(kind.name, port.name)]
        places[names[port.name]].update(dict.fromkeys((spec, HBM) for spec in borders[group]))
        if port in kind.outputs:
            exits.setdefault(names[port.name], []).append((port.name, group))
    in_place = {names[op.output.name] for op in kind.ops if op_kind(op.kind).in_place is not None}
    arriving = {t.name for t in kind.inputs}
    out = []
    for name, tensor in names.tensors.items():
        layouts = _layouts(tensor, tuple(places[name]), steps[name], pricing)
        occupied = [pricing.bytes(tensor, spec) for spec in layouts.specs]
        out.append(
            Value(
                tensor=tensor,
                layouts=layouts,
                bytes=np.array(occupied).reshape(len(layouts.specs), pricing.batches),
                in_place=name in in_place,
                port=blocks.port_group[(kind.name, name)] if name in arriving else -1,
                exits=tuple(exits.get(name, ())),
            )
        )
    return tuple(out)


def _layouts(
    tensor: Tensor, places: tuple[tuple[Spec, str], ...], steps: Iterable[Transfer], pricing: Pricing
) -> Layouts:
    number = {place: index for index, place in enumerate(places)}
    by_pair = {(number[t.before, HBM], number[t.after, HBM]): t for t in steps}
    specs, tiers = tuple(spec for spec, _ in places), tuple(tier for _, tier in places)
    closure = pricing.closure(tensor, specs, by_pair)
    return Layouts(specs=specs, steps=by_pair, closure=closure, tiers=() if set(tiers) <= {HBM} else tiers)


def _numbered(draft: _Draft, names: Names, values: tuple[Value, ...]) -> CostedMode:
    mode = draft.mode

    def layout(tensor: Tensor, spec: Spec) -> int:
        return values[names.number[names[tensor.name]]].layouts.place[spec, draft.tier(tensor, names)]

    reads = tuple(
        Read(operand=index, value=names.number[names[tensor.name]], layout=layout(tensor, spec))
        for index, (tensor, spec) in enumerate(zip(mode.op.operands, mode.operands, strict=True))
        if names[tensor.name] in names.number
    )
    leaves = tuple(
        LeafRead(
            operand=index,
            leaf=leaf.name,
            spec=spec if rest.gather is None else rest.gather.before,
            tier=rest.tier,
            gather=rest.gather,
        )
        for index, leaf, spec in _leaf_reads(mode, names)
        for rest in [draft.rest(leaf.name)]
    )
    made = names.number[names[mode.op.output.name]]
    return CostedMode(mode=mode, value=made, out=layout(mode.op.output, mode.out), reads=reads, leaves=leaves)
