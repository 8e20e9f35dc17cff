"""The cost of an operator in a mode, of a transfer, of a leaf at rest: one roofline for extractors and simulator alike.

Equations of the RoofLang paper (arXiv 2609.12551): compute T_c = Σ_q F_q / P_q, local memory T_m = Σ bytes·fraction/β
over reads and writes (HBM is half duplex, they add), network T_n = α + max over levels, uncontended T = max(T_c, T_m,
T_n).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rooflang.assumptions import Assumptions
from rooflang.cost.network import all_to_all, collective, latency_s, neighbour, through_nics
from rooflang.cost.record import Cost
from rooflang.cost.tiers import Tiers, with_tiers
from rooflang.hw.cluster import Cluster
from rooflang.hw.mesh import Mesh
from rooflang.ir.cut import PARTIAL, REPLICATED, STATES, Cut, CutKind, Spec
from rooflang.ir.graph import Graph
from rooflang.ir.kinds.moe import expert_labels
from rooflang.ir.layout import Mode, Transfer
from rooflang.ir.load import busiest
from rooflang.ir.op import Op, op_kind
from rooflang.ir.tensor import Num, Role, Tensor

IMPOSSIBLE = Cost(compute_s=np.inf, memory_s=np.inf)


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Costs on one rank of `mesh`. `sizes` are the unsplit extents; those of `batch` may be an array of batch sizes,
    and every cost is then an array over them."""

    cluster: Cluster
    mesh: Mesh
    sizes: Mapping[str, Num]
    assumptions: Assumptions
    partial_scale: Mapping[str, float] = field(default_factory=dict)
    #: Labels of experts, where some are chosen more often than others.
    skewed: frozenset[str] = frozenset()
    _parts: dict[Spec, Mapping[str, int]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _fits: dict[Spec, Num] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls, graph: Graph, cluster: Cluster, mesh: Mesh, assumptions: Assumptions, *, batch: Num | None = None
    ) -> CostModel:
        """The model for a graph; `batch` replaces the extent of its `batch` dim, and may be an array."""
        sizes: dict[str, Num] = dict(graph.sizes)
        if batch is not None and "batch" in sizes:
            sizes["batch"] = batch
        return cls(
            cluster=cluster,
            mesh=mesh,
            sizes=sizes,
            assumptions=assumptions,
            partial_scale=graph.partial_scale if assumptions.partial_state else {},
            skewed=expert_labels(graph.ops) if assumptions.skewed else frozenset(),
        )

    # -- shapes ---------------------------------------------------------------------------------------------------

    def parts(self, spec: Spec) -> Mapping[str, int]:
        """How many parts each label is cut into by a spec."""
        if spec not in self._parts:
            out: dict[str, int] = {}
            for axis, state in zip(self.mesh.axes, spec, strict=True):
                if state not in STATES:
                    out[state] = out.get(state, 1) * axis.size
            self._parts[spec] = out
        return self._parts[spec]

    def divides(self, parts: Mapping[str, int]) -> Num:
        """True where every label's extent divides by its parts (an array over batch sizes)."""
        good: Num = True
        for label, count in parts.items():
            good = np.logical_and(good, np.mod(self.sizes[label], count) == 0)
        return good

    def fits(self, spec: Spec) -> Num:
        """True where every extent divides by its parts in a spec (an array over batch sizes)."""
        if spec not in self._fits:
            self._fits[spec] = self.divides(self.parts(spec))
        return self._fits[spec]

    def local(self, parts: Mapping[str, int]) -> Mapping[str, Num]:
        """Extents on one rank."""
        return {**self.sizes, **{label: self.sizes[label] / count for label, count in parts.items()}}

    def bytes(self, tensor: Tensor, spec: Spec) -> Num:
        """Bytes of a tensor on one rank in that spec. A partial value is whole, and carries its statistics."""
        whole = tensor.bytes(self.sizes) / math.prod(self.parts(spec).values())
        if self.skewed:
            whole = whole * self.busiest(tensor, spec)
        return whole * (self.partial_scale.get(tensor.name, 1.0) if PARTIAL in spec else 1.0)

    def busiest(self, tensor: Tensor, spec: Spec) -> float:
        """Rows of a routed tensor on the rank with most of them, over the mean."""
        for label in self.skewed & set(tensor.dims) if tensor.fill < 1.0 else ():
            parts = self.parts(spec).get(label, 1)
            return busiest(self.assumptions, self.sizes[label], tensor.fill * self.sizes[label], parts)
        return 1.0

    # -- costs ----------------------------------------------------------------------------------------------------

    def mode(self, mode: Mode, tiers: Tiers = ()) -> Cost:
        """Cost of an operator in a mode, its leaves in HBM but for those in `tiers`; infinite where its extents do not
        divide, or shards lose their alignment or tear groups."""
        return with_tiers(self._near(mode), mode, tiers, self) if tiers else self._near(mode)

    def local_extents(self, mode: Mode) -> Mapping[str, Num]:
        """Extents of the loops of an operator in a mode on one rank."""
        return self.local(self._loop_parts(mode))

    def _near(self, mode: Mode) -> Cost:
        """Cost of an operator all of whose leaves are in HBM."""
        parts = self._loop_parts(mode)
        good = self.divides(parts)
        for spec in (*mode.operands, mode.out):
            good = np.logical_and(good, self.fits(spec))
        for choice in mode.choices:
            if isinstance(choice, Cut) and choice.multiple_of > 1:
                good = np.logical_and(good, self.divides({choice.dim: parts[choice.dim] * choice.multiple_of}))
            if isinstance(choice, Cut) and choice.grouped:
                good = np.logical_and(good, self._keeps_groups(choice.grouped, parts))
        if not np.any(good):
            return IMPOSSIBLE
        local = self.local(parts)
        compute: Num = 0.0
        for peak, flops in self._flops(mode, local).items():
            compute = compute + flops / self.cluster.device.peak(peak)
        levels, alpha, remote = self._internal_network(mode, local)
        bad = np.where(good, 0.0, np.inf)
        memory = self._memory_s(mode, local, remote)
        if (
            any(isinstance(c, Cut) and c.kind is CutKind.SCAN and c.combine == "affine" for c in mode.choices)
            and levels
        ):
            # The exchange stands between two passes of the operator, neither of which hides it.
            alpha = alpha + np.maximum(compute, memory)
        return Cost(compute_s=compute + bad, memory_s=memory + bad, levels_s=levels, alpha_s=alpha)

    def _keeps_groups(self, grouped: Sequence[str], parts: Mapping[str, int]) -> Num:
        """True where even shards of members are those of whole groups: a group has ⌈M/G⌉ of M members."""
        members, groups = grouped
        return parts[groups] == 1 or np.mod(self.sizes[members], self.sizes[groups]) == 0

    def flops(self, mode: Mode) -> Mapping[str, Num]:
        """FLOPs of an operator in a mode on one rank, by the peak rate that they run at."""
        return self._flops(mode, self.local_extents(mode))

    def _flops(self, mode: Mode, local: Mapping[str, Num]) -> Mapping[str, Num]:
        flops = op_kind(mode.op.kind).flops(mode.op, local, self.sizes)
        if not self.skewed:
            return flops
        more = self.busiest(mode.op.operands[0], mode.operands[0])
        return {peak: amount * more for peak, amount in flops.items()}

    def transfer(self, tensor: Tensor, transfer: Transfer) -> Cost:
        """Cost of a collective; a slice is free."""
        good = np.logical_and(self.fits(transfer.before), self.fits(transfer.after))
        if not np.any(good):
            return IMPOSSIBLE
        bad = np.where(good, 0.0, np.inf)
        if transfer.free:
            return Cost(memory_s=bad)
        levels, alpha = self._carried(transfer, self._carried_bytes(tensor, transfer))
        return Cost(memory_s=bad, levels_s=levels, alpha_s=alpha)

    def transfers_s(self, tensor: Tensor, transfers: Sequence[Transfer]) -> Num:
        """Network seconds (transfers, b) of many transfers of one tensor at b batch sizes, as `transfer` tells of each;
        infinite where extents do not divide."""
        out = np.zeros((len(transfers), np.size(self.sizes.get("batch", 1))))
        alike: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        for number, transfer in enumerate(transfers):
            if not transfer.free:
                out[number] = self._carried_bytes(tensor, transfer)
                alike.setdefault((transfer.collective, transfer.axes), []).append(number)
        for numbers in alike.values():
            levels, alpha = self._carried(transfers[numbers[0]], out[numbers])
            out[numbers] = Cost(levels_s=levels, alpha_s=alpha).exposed_s
        for number, transfer in enumerate(transfers):
            out[number, np.logical_not(np.logical_and(self.fits(transfer.before), self.fits(transfer.after)))] = np.inf
        return out

    def _carried_bytes(self, tensor: Tensor, transfer: Transfer) -> Num:
        """What a collective is about: all of the tensor, or for an all-to-all what one rank holds."""
        if transfer.collective == "all_to_all":
            held = self.bytes(tensor, transfer.before)
            return np.maximum(held, self.bytes(tensor, transfer.after)) if self.skewed else held
        from_before = transfer.collective in ("all_reduce", "reduce_scatter", "reduce", "scatter")
        return self.bytes(tensor, transfer.before if from_before else transfer.after)

    def _carried(self, transfer: Transfer, carried: Num) -> tuple[dict[str, Num], float]:
        """Seconds by level and α of a collective about so many bytes."""
        group = self._group(transfer.axes)
        alpha = latency_s(self.cluster, group)
        if transfer.collective == "all_to_all":
            return all_to_all(self.cluster, group, carried), alpha
        return collective(self.cluster, group, transfer.collective, carried, self.assumptions), alpha

    def send(self, tensor: Tensor, spec: Spec, stage: int) -> Cost:
        """Cost of handing a value from a rank of a pipeline stage to the same rank of the next one, over the fabric
        level that lies between the two blocks of GPUs."""
        here, there = stage * self.mesh.gpus, (stage + 1) * self.mesh.gpus
        level = self.cluster.level_between(here, there)
        return Cost(
            levels_s=through_nics(self.cluster, {level.name: self.bytes(tensor, spec) / level.bytes_per_s}),
            alpha_s=latency_s(self.cluster, {level.name: 2}) if self.assumptions.remote_latency else 0.0,
        )

    def _group(self, axes: tuple[int, ...]) -> dict[str, int]:
        return self.mesh.level_sizes([self.mesh.axes[i].name for i in axes])

    def _loop_parts(self, mode: Mode) -> dict[str, int]:
        out: dict[str, int] = {}
        for axis, choice in zip(self.mesh.axes, mode.choices, strict=True):
            if isinstance(choice, Cut):
                for label in choice.loops:
                    out[label] = out.get(label, 1) * axis.size
        return out

    def _memory_s(self, mode: Mode, local: Mapping[str, Num], remote: Num) -> Num:
        """Seconds of local memory. `remote` bytes are read or written over the network instead."""
        op, kind = mode.op, op_kind(mode.op.kind)
        written = self._moved(op.output, mode.out, kind.write_fraction(op, local, self.sizes))
        moved: Num = written * _passes(mode) + self._maps_bytes(mode, local) - remote
        for index, (tensor, spec) in enumerate(zip(op.operands, mode.operands, strict=True)):
            share = kind.read_fraction(op, index, local, self.sizes, self.assumptions)
            moved = moved + self._moved(tensor, spec, share)
        return moved / self.cluster.device.hbm_bytes_per_s

    def _maps_bytes(self, mode: Mode, local: Mapping[str, Num]) -> Num:
        """Bytes of the affine maps that a rank reads where it makes the last state from those of all shards."""
        read: Num = 0.0
        for axis, cut in enumerate(mode.choices):
            if isinstance(cut, Cut) and cut.combine == "affine" and cut.out == REPLICATED:
                read = read + _held(cut, local) * self.mesh.axes[axis].size
        return read

    def _moved(self, tensor: Tensor, spec: Spec, share: Num) -> Num:
        """Bytes of a tensor that HBM moves on one rank. What comes on chip does so once: more passes over it read it,
        or what it was made of, from memory."""
        return self.bytes(tensor, spec) * (np.maximum(0.0, share - 1.0) if tensor.role is Role.ON_CHIP else share)

    # -- network inside an operator ---------------------------------------------------------------------------------

    def _internal_network(self, mode: Mode, local: Mapping[str, Num]) -> tuple[dict[str, Num], float, Num]:
        """(seconds by level, α, bytes that HBM does not carry) of routed cuts and of summaries that ranks exchange."""
        levels: dict[str, Num] = {}
        alpha, remote = 0.0, 0.0
        routed = tuple(i for i, c in enumerate(mode.choices) if isinstance(c, Cut) and c.kind is CutKind.ROUTE)
        if routed:
            seconds, alpha, remote = self._routed(mode, routed)
            levels.update(seconds)
        for axis, choice in enumerate(mode.choices):
            if isinstance(choice, Cut) and choice.stat_bytes and self._charged(mode.op, choice):
                found = self._exchanged(choice, axis, local)
                levels = {k: levels.get(k, 0.0) + found.get(k, 0.0) for k in {**levels, **found}}
                alpha += latency_s(self.cluster, self._group((axis,))) + self._prefix_s(choice, axis, local)
        return levels, alpha, remote

    def _prefix_s(self, cut: Cut, axis: int, local: Mapping[str, Num]) -> Num:
        """Seconds until the last rank has applied the affine maps of all others; the other ranks wait for it."""
        if cut.combine != "affine":
            return 0.0
        return _held(cut, local) * (self.mesh.axes[axis].size - 1) / self.cluster.device.hbm_bytes_per_s

    def _charged(self, op: Op, cut: Cut) -> bool:
        """The paper's decode CP reduces partial outputs without exchanging top-k candidates (see `Assumptions`). Who is
        part of another kernel has its summaries from there."""
        return not op.attr("fused") and (cut.kind is not CutKind.FOLD or self.assumptions.partial_state)

    def _exchanged(self, cut: Cut, axis: int, local: Mapping[str, Num]) -> dict[str, Num]:
        """Seconds by level to exchange what the ranks of an axis have to know of each other. Top-k candidates and
        affine maps of all ranks come together, a suffix goes to the next rank, sums meet in an all-reduce."""
        group, held = self._group((axis,)), _held(cut, local)
        if cut.combine == "suffix":
            return neighbour(self.cluster, group, held)
        if cut.combine == "topk" or cut.kind in (CutKind.FOLD, CutKind.SCAN):
            return collective(self.cluster, group, "all_gather", held * self.mesh.axes[axis].size, self.assumptions)
        return collective(self.cluster, group, "all_reduce", held, self.assumptions)

    def _routed(self, mode: Mode, axes: tuple[int, ...]) -> tuple[dict[str, Num], float, Num]:
        """Dispatch or combine whose rows cross to their experts' ranks inside the kernel."""
        op = mode.op
        rows, spec = (op.output, mode.out) if op.kind == "dispatch" else (op.operands[0], mode.operands[0])
        held = self.bytes(rows, spec)
        ranks = math.prod(self.mesh.axes[i].size for i in axes)
        group = self._group(axes)
        sent = held * self._copies(op, rows, spec)
        alpha = latency_s(self.cluster, group) if self.assumptions.remote_latency else 0.0
        remote = 0.0 if self.assumptions.remote_memory_traffic else held * (1 - 1 / ranks)
        return all_to_all(self.cluster, group, sent), alpha, remote

    def _copies(self, op: Op, rows: Tensor, spec: Spec) -> float:
        """Copies of a token that travel, over the k routed rows. Per rank: a rank that hosts a share p of the experts
        is hit with probability 1 − (1 − p)^k by k independent choices, and gets one copy then. Where some experts are
        chosen more often, p is the share of the choices that the busiest rank gets."""
        expert = str(op.attr("expert", "expert"))
        if self.assumptions.dispatch_copies == "expert":
            return 1.0
        k = rows.fill * float(self.sizes[expert])
        share = min(1.0, self.busiest(rows, spec) / self.parts(spec)[expert])
        return float((1.0 - (1.0 - share) ** k) / (k * share))


def _held(cut: Cut, local: Mapping[str, Num]) -> Num:
    """Bytes of what one rank has to tell of its share."""
    return math.prod(local[d] for d in cut.stat_rows) * cut.stat_bytes


def _passes(mode: Mode) -> int:
    """How often the output is written: a copy that collects rows `across` a label goes axis by axis of those that cut
    it, and has nothing to collect where none does."""
    across = mode.op.attr("across")
    return sum(isinstance(c, Cut) and c.dim == across for c in mode.choices) if across else 1


def peaks_needed(graph: Graph) -> set[str]:
    """Names of the peak rates that the graph's operators compute at, so that a device can be checked before any
    work."""
    sizes = dict.fromkeys(graph.sizes, 1)
    return {peak for op in graph.ops for peak in op_kind(op.kind).flops(op, sizes, sizes)}
