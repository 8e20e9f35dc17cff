"""What a block is whatever it costs: its modes by numbers, and the layouts that its values can take.

Of the mesh that depends on no more than which modes can run, so that many meshes share one shape, and with it all that
follows from who makes and who reads what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.extractors.layouts import BoolArray, IntArray, Places
from rooflang.extractors.resting import Kernel, shared_leaves
from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.tensor import Tensor


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CostedMode:
    """A mode by numbers: it makes `value` in layout `out` from `reads` and `leaves`."""

    mode: Mode
    value: int
    out: int
    reads: tuple[Read, ...]
    leaves: tuple[LeafRead, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Slot:
    """Tensors of one block that are equal (identities between them removed), under the name of the first one.

    `port` is the port group that it arrives by, -1 if the block makes it. `exits` are the output ports that it leaves
    by, with their port groups. `in_place` says that some kernels make it by writing into a leaf. Slots of one number
    `alike` have tensors that cost the same, and equal places.
    """

    tensor: Tensor
    places: Places
    alike: int
    in_place: bool = False
    port: int = -1
    exits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A leaf at rest in a layout; those of one number `alike` occupy as much."""

    leaf: Tensor
    spec: Spec
    alike: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafReads:
    """Leaves and the layouts in which they rest, leaf by leaf; the `modes` that read each, by number, one after the
    other from its place in `starts` on."""

    rests: tuple[tuple[str, Spec], ...]
    modes: IntArray
    starts: IntArray

    def any_of(self, modes: BoolArray) -> BoolArray:
        """For each leaf in a layout: does any of its modes have what `modes` (modes, b) says of them? (rests, b)"""
        if not self.rests:
            return np.zeros((0, modes.shape[1]), bool)
        return np.asarray(np.logical_or.reduceat(modes[self.modes], self.starts))


@dataclass(frozen=True, kw_only=True, eq=False)
class Shape:
    """One kind of block: its values, its modes, and what its leaves may be held as. `aliases` are the identities that
    are left out, as in `BlockPlan`."""

    kind: BlockKind
    values: tuple[Slot, ...]
    modes: tuple[CostedMode, ...]
    held: tuple[Held, ...]
    aliases: Mapping[str, str]

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
    def leaf_reads(self) -> LeafReads:
        """Which modes read which leaf in which layout."""
        found: dict[tuple[str, Spec], list[int]] = {}
        for number, mode in enumerate(self.modes):
            for read in mode.leaves:
                found.setdefault((read.leaf, read.spec), []).append(number)
        rests = sorted(found)
        modes = [number for rest in rests for number in found[rest]]
        starts = np.cumsum([0, *(len(found[rest]) for rest in rests[:-1])])
        return LeafReads(rests=tuple(rests), modes=np.array(modes, np.int64), starts=starts)

    @cached_property
    def makers(self) -> tuple[tuple[int, ...], ...]:
        """For each value the numbers of the modes that make it."""
        out: list[list[int]] = [[] for _ in self.values]
        for number, mode in enumerate(self.modes):
            out[mode.value].append(number)
        return tuple(map(tuple, out))
