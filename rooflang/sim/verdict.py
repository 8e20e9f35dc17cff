"""What a plan needs at least, before it is lowered or simulated: memory in a millisecond, time in a few.

Both bounds go over block kinds, not layers, so that they cost the same for a model of any depth, and take an array of
batch sizes at once. They hold for every order of the operators; a plan that they refuse is hopeless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.errors import CapacityError
from rooflang.ir.blocks import BlockKind, Blocks
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Transfer
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import RESIDENT_ROLES, Num, Role, Tensor
from rooflang.place.plan import BlockPlan, Plan
from rooflang.sim.emit import PER_WAVE
from rooflang.sim.result import Overlap
from rooflang.sim.schedule import split_batch
from rooflang.units import show_bytes

_NAMED = 5

#: Sums in another order differ by rounding; a bound stays below what is simulated.
_ROUNDING = 1 - 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """Lower bounds of a plan: bytes in the fullest device, seconds of a step. Numbers, or arrays over batch sizes."""

    least_bytes: Num
    least_step_s: Num
    capacity_bytes: float

    @property
    def hopeless(self) -> Num:
        """True where it cannot fit, or its extents do not divide."""
        return np.logical_or(self.least_bytes > self.capacity_bytes, np.isinf(self.least_step_s))


def verdict(plan: Plan, blocks: Blocks, cost: CostModel, *, overlap: Overlap = "perfect") -> Verdict:
    """Lower bounds on memory and on the step time in an overlap mode; `cost` may be a model for many batch sizes."""
    return Verdict(
        least_bytes=least_bytes(plan, blocks, cost, overlap),
        least_step_s=least_step_s(plan, blocks, cost, overlap),
        capacity_bytes=cost.cluster.device.hbm_bytes,
    )


# -- memory -----------------------------------------------------------------------------------------------------------


def least_bytes(plan: Plan, blocks: Blocks, cost: CostModel, overlap: Overlap = "perfect") -> Num:
    """What the fullest stage holds at least: its residents and, at one time, all that one operator reads and writes (of
    half the batch in two-batch overlap)."""
    part = split_batch(cost, 2) if overlap == "two-batch" else cost
    largest = {kind.name: _largest_operator(kind, plan.blocks[kind.name], part) for kind in blocks.kinds}
    waves = len(plan.stages)
    most: Num = 0.0
    for labels in plan.stages:
        held: Num = sum(_bytes(t, spec, cost, waves) for _, t, spec in _residents(plan, blocks, labels))
        kinds = {blocks.kind_of[label] for label in labels}
        most = np.maximum(most, held + np.max(np.broadcast_arrays(*(largest[kind] for kind in kinds)), axis=0))
    return most


def refuse_hopeless(plan: Plan, blocks: Blocks, cost: CostModel, overlap: Overlap = "perfect") -> None:
    """Raise `CapacityError` if no order of the operators fits; it names the largest tensors: those that rest, and those
    of the operator that works on most."""
    capacity = cost.cluster.device.hbm_bytes
    least = float(least_bytes(plan, blocks, cost, overlap))
    if least <= capacity:
        return
    waves, part = len(plan.stages), split_batch(cost, 2) if overlap == "two-batch" else cost
    rests, works = [], []
    for labels in plan.stages:
        rests.append({name: float(_bytes(t, spec, cost, waves)) for name, t, spec in _residents(plan, blocks, labels)})
        kinds = [blocks.by_name[name] for name in {blocks.kind_of[x] for x in labels}]
        held = [sizes for kind in kinds for sizes in _held(kind, plan.blocks[kind.name], part)]
        works.append({name: float(size) for name, size in max(held, key=_total, default={}).items()})
    stage = max(range(len(rests)), key=lambda s: _total(rests[s]) + _total(works[s]))
    largest = sorted([*rests[stage].items(), *works[stage].items()], key=lambda entry: (-entry[1], entry[0]))[:_NAMED]
    named = ", ".join(f"{name} ({show_bytes(size)})" for name, size in largest)
    raise CapacityError(
        f"HBM of stage {stage} needs at least {show_bytes(least)} of {show_bytes(capacity)}, "
        f"{show_bytes(_total(rests[stage]))} of them for good; the largest are {named}",
        needs_bytes=least,
        where=plan.origin,
        expected=f"at most {show_bytes(capacity)} alive at any time",
        hint="cut the largest tensors over more devices, or use a smaller batch",
    )


def _total(sizes: Mapping[str, Num]) -> Num:
    return sum(sizes.values())


def _residents(plan: Plan, blocks: Blocks, labels: tuple[str, ...]) -> Iterator[tuple[str, Tensor, Spec]]:
    """(name, tensor, spec) of every leaf that stays in the HBM of a stage, each once."""
    seen: set[tuple[str, Spec]] = set()
    tables = {kind.name: list(_leaves(kind, plan.blocks[kind.name])) for kind in blocks.kinds}
    for label in labels:
        names = blocks.rename[label]
        for tensor, spec in tables[blocks.kind_of[label]]:
            key = (names[tensor.name], spec)
            if key not in seen:
                seen.add(key)
                yield key[0], tensor, spec


def _leaves(kind: BlockKind, plan: BlockPlan) -> Iterator[tuple[Tensor, Spec]]:
    made = {op.output.name for op in kind.ops} | {tensor.name for tensor in kind.inputs}
    for kernel, mode in plan.modes.items():
        for index, tensor in enumerate(mode.op.operands):
            source = plan.source(tensor.name)
            if tensor.role in RESIDENT_ROLES and source not in made and plan.tiers.get(source, "hbm") == "hbm":
                yield (tensor if source == tensor.name else replace(tensor, name=source)), plan.rests(kernel, index)


def _bytes(tensor: Tensor, spec: Spec, cost: CostModel, waves: int) -> Num:
    return cost.bytes(tensor, spec) * (waves if tensor.role in PER_WAVE else 1)


def _largest_operator(kind: BlockKind, plan: BlockPlan, cost: CostModel) -> Num:
    """The most that one operator reads and writes."""
    most: Num = 0.0
    for sizes in _held(kind, plan, cost):
        most = np.maximum(most, _total(sizes))
    return most


def _held(kind: BlockKind, plan: BlockPlan, cost: CostModel) -> Iterator[dict[str, Num]]:
    """For each operator the sizes of what it reads and writes, of what surely lies in memory as it is then: not on
    chip, not passed through, not moved or sliced on the way, nor, without receive buffers, handed over by a block."""
    moved = {(name, index) for (name, index), path in plan.paths.items() if path}
    sliced = {plan.modes[name].op.operands[index].name for name, index in moved} | {
        n for n, path in plan.exits.items() if path
    }
    through = {name for name, mode in plan.modes.items() if mode.op.attr("streamed") or mode.op.attr("one_pass")}
    handed = set() if cost.assumptions.receive_buffers else {port.name for port in kind.inputs}
    for name, mode in plan.modes.items():
        held = {
            tensor.name: cost.bytes(tensor, spec)
            for index, (tensor, spec) in enumerate(zip(mode.op.operands, mode.operands, strict=True))
            if _lies(tensor) and (name, index) not in moved and tensor.name not in through | sliced | handed
        }
        known = op_kind(mode.op.kind)
        if known.in_place is None and not known.range and _lies(mode.op.output) and name not in through | sliced:
            held[name] = cost.bytes(mode.op.output, mode.out)
        yield held


def _lies(tensor: Tensor) -> bool:
    return tensor.role not in RESIDENT_ROLES and tensor.role is not Role.ON_CHIP


# -- time -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Sums:
    """Seconds that a rank spends at least: C, N, and on each resource."""

    local_s: Num = 0.0
    exposed_s: Num = 0.0
    busy_s: dict[str, Num]

    def add(self, other: _Sums, times: int = 1) -> None:
        self.local_s = self.local_s + other.local_s * times
        self.exposed_s = self.exposed_s + other.exposed_s * times
        for name, seconds in other.busy_s.items():
            self.busy_s[name] = self.busy_s.get(name, 0.0) + seconds * times


def least_step_s(plan: Plan, blocks: Blocks, cost: CostModel, overlap: Overlap = "perfect") -> Num:
    """What the slowest stage takes at least; infinite where extents do not divide.

    Without overlap it is Σ C + Σ N of the stage, and with perfect overlap the larger of them; sends between stages and
    waits come on top. Two micro-batches keep every resource busy for twice what one of them needs of it.
    """
    waves = 1
    if overlap == "two-batch":
        cost, waves = split_batch(cost, 2), 2
    kernels = {kind.name: _kernel_sums(plan.blocks[kind.name], cost) for kind in blocks.kinds}
    slowest: Num = 0.0
    for labels in plan.stages:
        total = _Sums(busy_s={})
        for name, count in blocks.counts(labels).items():
            total.add(kernels[name], count)
        for tensor, step, count in _transfers(plan, blocks, labels):
            total.add(_of(cost.transfer(tensor, step)), count)
        slowest = np.maximum(slowest, _bound(total, overlap) * waves * _ROUNDING)
    return slowest


def _bound(sums: _Sums, overlap: Overlap) -> Num:
    if overlap == "none":
        return sums.local_s + sums.exposed_s
    if overlap == "perfect":
        return np.maximum(sums.local_s, sums.exposed_s)
    busiest: Num = 0.0
    for seconds in sums.busy_s.values():
        busiest = np.maximum(busiest, seconds)
    return busiest


def _kernel_sums(plan: BlockPlan, cost: CostModel) -> _Sums:
    total = _Sums(busy_s={})
    for mode in plan.modes.values():
        total.add(_of(cost.mode(mode, plan.tiers_of(mode))))
    return total


def _of(cost: Cost) -> _Sums:
    busy = {"compute": cost.compute_s, "memory": cost.memory_s, **cost.levels_s}
    return _Sums(local_s=cost.local_s, exposed_s=cost.exposed_s, busy_s=busy)


def _transfers(plan: Plan, blocks: Blocks, labels: tuple[str, ...]) -> Iterator[tuple[Tensor, Transfer, int]]:
    """(tensor, transfer, how often) of what the blocks of a stage move; a value that is there already is not moved."""
    seen: set[tuple[str, Spec]] = set()
    counts: Counter[tuple[str, int]] = Counter()
    tables = {kind.name: list(_moves(kind, plan.blocks[kind.name])) for kind in blocks.kinds}
    for label in labels:
        kind, names = blocks.kind_of[label], blocks.rename[label]
        seen |= {(names[name], mode.out) for name, mode in plan.blocks[kind].modes.items()}
        for index, (tensor, step) in enumerate(tables[kind]):
            key = (names[tensor.name], step.after)
            if key not in seen:
                seen.add(key)
                counts[kind, index] += not step.free
    for (kind, index), count in counts.items():
        if count:
            yield (*tables[kind][index], count)


def _moves(kind: BlockKind, plan: BlockPlan) -> Iterator[tuple[Tensor, Transfer]]:
    """The transfers of a block, slices included. One that follows the removal of an identity is left out: it may
    be shared with another block."""
    for (name, index), path in plan.paths.items():
        tensor = plan.modes[name].op.operands[index]
        if plan.source(tensor.name) == tensor.name:
            yield from ((tensor, step) for step in path)
    for tensor in kind.outputs:
        if plan.source(tensor.name) == tensor.name:
            yield from ((tensor, step) for step in plan.exits.get(tensor.name, ()))
