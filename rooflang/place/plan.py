"""`Plan`: how every operator of a graph lies over a mesh, stage by stage. The one record that search hands to
simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rooflang.cost.tiers import HBM, Tiers
from rooflang.hw.mesh import Mesh
from rooflang.ir.cut import Spec
from rooflang.ir.joint import Rewriting
from rooflang.ir.layout import Mode, Transfer, source_of
from rooflang.ir.op import op_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """How one block kind lies over the mesh; names are those of the kind's representative block.

    `modes[name]` is the mode of the kernel whose output is tensor `name`; operators fused into another kernel have
    none. `paths[(name, i)]` are the transfers, in order, between what the producer of operand i makes and what that
    kernel reads; the key is absent where the two specs are equal. A weight that has one rests as the path begins, and
    is gathered for that kernel. `exits[name]` leads from what makes an output port
    to the spec of its port group. `tiers[leaf]` is the memory of a leaf that is not in HBM. `aliases[name]` is the
    operand of an identity that was removed: who reads `name` reads that tensor.
    """

    modes: Mapping[str, Mode]
    paths: Mapping[tuple[str, int], tuple[Transfer, ...]] = field(default_factory=dict)
    exits: Mapping[str, tuple[Transfer, ...]] = field(default_factory=dict)
    tiers: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def source(self, tensor: str) -> str:
        """The tensor that stands for `tensor`: itself, unless the identity that made it was removed."""
        return source_of(self.aliases, tensor)

    def tier(self, tensor: str) -> str:
        """The memory in which a tensor lies: that of its leaf, or of what it was written into in place; else HBM."""
        name = self.source(tensor)
        mode = self.modes.get(name)
        place = None if mode is None else op_kind(mode.op.kind).in_place
        if mode is None or place is None:
            return self.tiers.get(name, HBM)
        return self.tier(mode.op.operands[place].name)

    def rests(self, kernel: str, index: int) -> Spec:
        """How a leaf that is operand number `index` of a kernel rests: as it is read, unless it is gathered."""
        path = self.paths.get((kernel, index))
        return path[0].before if path else self.modes[kernel].operands[index]

    def tiers_of(self, mode: Mode) -> Tiers:
        """Where the operands of a kernel lie that stay in a memory other than HBM."""
        if not self.tiers:
            return ()
        lies = ((index, self.tier(tensor.name)) for index, tensor in enumerate(mode.op.operands))
        return tuple((index, tier) for index, tier in lies if tier != HBM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A placed architecture: mesh of one pipeline stage, blocks per stage, one `BlockPlan` per block kind.

    `stages[s]` are the labels of the blocks that stage s runs. `boundary[group]` is the spec of each port group.
    Stage s occupies the GPUs [s·n, (s+1)·n) with n = GPUs of the mesh. Kernels are named by the tensors that they make:
    of each pair in `control` the second waits for the first, which comes before it in program order anyway; `streams`
    are those that are not issued on stream 0, collectives by what they move (`layers.0.down all_reduce`). `apart` are
    the operators of the initial graph that were taken apart before anything was laid; blocks are those of the graph
    after it.
    """

    mesh: Mesh
    stages: tuple[tuple[str, ...], ...]
    blocks: Mapping[str, BlockPlan]
    boundary: Mapping[int, Spec]
    control: tuple[tuple[str, str], ...] = ()
    streams: Mapping[str, int] = field(default_factory=dict)
    apart: tuple[Rewriting, ...] = ()
    origin: str = "given"
