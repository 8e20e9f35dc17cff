"""Frozen blocks with their costs: what every extractor starts from.

Arrays have one column per batch size of the cost model. C is the local time of a mode (compute or memory), N the
network time that it does not hide; both in seconds on one rank. Impossible layouts cost infinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.eqsat import FrozenBlock
from rooflang.errors import PlacementError
from rooflang.extractors.layouts import FloatArray, Layouts
from rooflang.extractors.pricing import BATCH, Pricing
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import OWNER, REPLICATED, Spec
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import RESIDENT_ROLES, Tensor

#: The memory in which leaves rest.
TIER = "hbm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Operand `operand` of a kernel: value number `value` of its block, in layout number `layout`."""

    operand: int
    value: int
    layout: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRead:
    """Operand `operand` of a kernel: a weight, cache or state at rest in layout `spec`."""

    operand: int
    leaf: str
    spec: Spec


@dataclass(frozen=True, kw_only=True, eq=False)
class Value:
    """Tensors of one block that are equal (identities between them removed), under the name of the first one.

    `port` is the port group that it arrives by, -1 if the block makes it. `exits` are the output ports that it leaves
    by, with their port groups. `bytes` (layouts, b) is what it occupies on a rank beside resident leaves.
    """

    tensor: Tensor
    layouts: Layouts
    bytes: FloatArray
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

    @cached_property
    def leaf(self) -> dict[str, Tensor]:
        """Leaves by name."""
        return {t.name: t for t in self.kind.leaves}

    @cached_property
    def common_leaves(self) -> frozenset[str]:
        """Leaves that several kernels of the block read, kernels that stand for each other counted once."""
        readers: dict[str, set[int]] = {}
        for mode in self.modes:
            for read in mode.leaves:
                readers.setdefault(read.leaf, set()).add(mode.value)
        return frozenset(leaf for leaf, values in readers.items() if len(values) > 1)

    @cached_property
    def makers(self) -> tuple[tuple[int, ...], ...]:
        """For each value the numbers of the modes that make it."""
        out: list[list[int]] = [[] for _ in self.values]
        for number, mode in enumerate(self.modes):
            out[mode.value].append(number)
        return tuple(map(tuple, out))


@dataclass(frozen=True, kw_only=True, eq=False)
class CostedGraph:
    """All kinds of block of a graph under one cost model. `batches` are its batch sizes.

    `borders[group]` are the layouts in which every block kind can hand over or take the ports of that group.
    """

    blocks: Blocks
    cost: CostModel
    batches: tuple[int, ...]
    kinds: Mapping[str, CostedKind]
    borders: Mapping[int, tuple[Spec, ...]]

    @classmethod
    def of(cls, blocks: Blocks, frozen: Mapping[str, FrozenBlock], cost: CostModel) -> CostedGraph:
        """Cost every mode and transfer. The extent `batch` of the model may be an array of batch sizes.

        Raises `PlacementError` when two kinds of block have no layout in common for what passes between them.
        """
        pricing = Pricing(cost)
        borders = _borders(blocks, frozen)
        return cls(
            blocks=blocks,
            cost=cost,
            batches=tuple(int(b) for b in np.atleast_1d(cost.sizes.get(BATCH, 1))),
            kinds={kind.name: _costed(blocks, frozen[kind.name], pricing, borders) for kind in blocks.kinds},
            borders=borders,
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


class _Names:
    """Which tensors of a block are one value."""

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

    def __getitem__(self, name: str) -> str:
        return self.first.get(name, name)

    def leaf(self, tensor: Tensor) -> Tensor:
        """The leaf that `tensor` is, or is a removed copy of."""
        return self._leaves[self[tensor.name]]


def _costed(
    blocks: Blocks, block: FrozenBlock, pricing: Pricing, borders: Mapping[int, tuple[Spec, ...]]
) -> CostedKind:
    names = _Names(block)
    owners = _owners_needed(block.modes)
    at_rest = {(hold.leaf, hold.spec) for hold in block.holds if hold.tier == TIER}
    drafts = []
    for mode in block.modes:
        looped = any(names[t.name] == names[mode.op.output.name] for t in mode.op.operands)
        if looped or (OWNER in mode.choices and not owners):
            continue
        cost = pricing.mode(mode)
        local = pricing.spread(cost.local_s)
        readable = at_rest.issuperset((t.name, s) for t, s in _leaf_reads(mode, names))
        if readable and np.any(np.isfinite(local)):
            drafts.append((mode, local, pricing.spread(cost.exposed_s)))
    values = _values(blocks, block, names, [d[0] for d in drafts], pricing, borders, owners)
    shape = (len(drafts), pricing.batches)
    held = {(t.name, s): pricing.bytes(t, s) for d in drafts for t, s in _leaf_reads(d[0], names)
            if t.role in RESIDENT_ROLES}  # fmt: skip
    return CostedKind(
        kind=block.kind,
        values=values,
        modes=tuple(_numbered(mode, names, values) for mode, _, _ in drafts),
        local_s=np.array([d[1] for d in drafts]).reshape(shape),
        exposed_s=np.array([d[2] for d in drafts]).reshape(shape),
        leaf_bytes=held,
        aliases=names.removed,
    )


def _leaf_reads(mode: Mode, names: _Names) -> Iterable[tuple[Tensor, Spec]]:
    """Operands that are leaves, or removed copies of leaves."""
    for tensor, spec in zip(mode.op.operands, mode.operands, strict=True):
        if names[tensor.name] not in names.number:
            yield names.leaf(tensor), spec


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
    names: _Names,
    modes: Iterable[Mode],
    pricing: Pricing,
    borders: Mapping[int, tuple[Spec, ...]],
    owners: bool,
) -> tuple[Value, ...]:
    kind = block.kind
    specs: dict[str, dict[Spec, None]] = {name: {} for name in names.tensors}
    steps: dict[str, list[Transfer]] = {name: [] for name in names.tensors}
    for mode in modes:
        for tensor, spec in zip((*mode.op.operands, mode.op.output), (*mode.operands, mode.out)):
            if names[tensor.name] in specs:
                specs[names[tensor.name]][spec] = None
    for transfer in block.transfers:
        name = names[transfer.tensor]
        if name in specs and (owners or OWNER not in (*transfer.before, *transfer.after)):
            specs[name].update({transfer.before: None, transfer.after: None})
            steps[name].append(transfer)
    exits: dict[str, list[tuple[str, int]]] = {}
    for port in (*kind.inputs, *kind.outputs):
        group = blocks.port_group[(kind.name, port.name)]
        specs[names[port.name]].update(dict.fromkeys(borders[group]))
        if port in kind.outputs:
            exits.setdefault(names[port.name], []).append((port.name, group))
    in_place = {op.output.name for op in kind.ops if op_kind(op.kind).in_place is not None}
    arriving = {t.name for t in kind.inputs}
    out = []
    for name, tensor in names.tensors.items():
        layouts = _layouts(tensor, tuple(specs[name]), steps[name], pricing)
        occupied = [pricing.bytes(tensor, spec) * (name not in in_place) for spec in layouts.specs]
        out.append(
            Value(
                tensor=tensor,
                layouts=layouts,
                bytes=np.array(occupied).reshape(len(layouts.specs), pricing.batches),
                port=blocks.port_group[(kind.name, name)] if name in arriving else -1,
                exits=tuple(exits.get(name, ())),
            )
        )
    return tuple(out)


def _layouts(tensor: Tensor, specs: tuple[Spec, ...], steps: Iterable[Transfer], pricing: Pricing) -> Layouts:
    number = {spec: index for index, spec in enumerate(specs)}
    by_pair = {(number[t.before], number[t.after]): t for t in steps}
    closure = pricing.closure(tensor, specs, by_pair)
    return Layouts(specs=specs, steps=by_pair, closure=closure)


def _numbered(mode: Mode, names: _Names, values: tuple[Value, ...]) -> CostedMode:
    reads, leaves = [], []
    for index, (tensor, spec) in enumerate(zip(mode.op.operands, mode.operands, strict=True)):
        value = names.number.get(names[tensor.name])
        if value is not None:
            reads.append(Read(operand=index, value=value, layout=values[value].layouts.number[spec]))
        elif names.leaf(tensor).role in RESIDENT_ROLES:
            leaves.append(LeafRead(operand=index, leaf=names.leaf(tensor).name, spec=spec))
    made = names.number[names[mode.op.output.name]]
    return CostedMode(
        mode=mode,
        value=made,
        out=values[made].layouts.number[mode.out],
        reads=tuple(reads),
        leaves=tuple(leaves),
    )
