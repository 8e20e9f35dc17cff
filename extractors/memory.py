"""How much memory decisions need: leaves at rest on every rank of a stage, each in its memory; and in HBM what the step
leaves behind and what the largest kernel works on. The simulation finds at least that: it also counts what waits for
later kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.errors import CapacityError
from rooflang.extractors.costed import CostedGraph, CostedKind, Value
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.plans import needed_modes
from rooflang.extractors.readers import needed_values, usable_modes
from rooflang.extractors.shape import CostedMode
from rooflang.extractors.task import PER_WAVE, Choice, Decisions, Load, Task
from rooflang.ir.cut import Spec, show_spec
from rooflang.ir.op import op_kind
from rooflang.ir.tensor import Num
from rooflang.units import show_bytes

#: How many tensors an error names.
_NAMED = 5

#: The number of a batch size, or all of them: what is then a number is an array (b,).
At = int | slice
EVERY = slice(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What fills a memory of one rank of a stage: entries (name, bytes)."""

    stage: int
    entries: tuple[tuple[str, float], ...]
    capacity_bytes: float
    tier: str = HBM

    @property
    def bytes(self) -> float:
        return sum(size for _, size in self.entries)

    @property
    def share(self) -> float:
        """How full the memory is; more than 1 does not fit."""
        return self.bytes / self.capacity_bytes


@lru_cache(maxsize=16)
def common_leaves(costed: CostedGraph) -> frozenset[tuple[str, str]]:
    """(kind, leaf) of leaves that several kernels read as one tensor, such as an embedding that the head reads
    again."""
    within = {(name, leaf) for name, kind in costed.kinds.items() for leaf in kind.common_leaves}
    return costed.blocks.shared_leaves | within


def rests_bytes(task: Task, kind: CostedKind, mode: CostedMode, tier: str = HBM, *, at: At | None = None) -> Num:
    """What the leaves of a kernel occupy in a memory of a rank of a stage, for one block, at the task's batch size or
    others; caches for every wave in flight. Leaves that others read too are left out."""
    common, at = common_leaves(task.costed), task.at if at is None else at
    return sum(
        kind.leaf_bytes[(read.leaf, read.spec)][at] * waves(task, kind, read.leaf)
        for read in mode.leaves
        if read.tier == tier and (kind.kind.name, read.leaf) not in common
    )


def held_bytes(
    task: Task, kind: CostedKind, modes: Iterable[CostedMode], tier: str = HBM, *, at: At | None = None
) -> Num:
    """What the leaves of all kernels of a block occupy in a memory of a rank, those that several of them read once for
    each layout. Leaves that other blocks read too are left out."""
    at, shared = task.at if at is None else at, task.costed.blocks.shared_leaves
    held = dict.fromkeys((read.leaf, read.spec) for mode in modes for read in mode.leaves if read.tier == tier)
    sizes = (
        kind.leaf_bytes[leaf, spec][at] * waves(task, kind, leaf)
        for leaf, spec in held
        if (kind.kind.name, leaf) not in shared
    )
    return sum(sizes)


def waves(task: Task, kind: CostedKind, leaf: str) -> int:
    """How many copies of a leaf a stage holds: a cache for every wave in flight, as many as there are stages."""
    return len(task.stages) if kind.leaf[leaf].role in PER_WAVE else 1


def output_bytes(kind: CostedKind, mode: CostedMode, at: At, *, buffers: bool) -> Num:
    """What a kernel's output occupies at least beside leaves: of what only one slice is read, that slice is kept.
    Without receive buffers a one-pass copy is as free as what a collective delivers (see
    `Assumptions.receive_buffers`)."""
    op, value = mode.mode.op, kind.values[mode.value]
    known = op_kind(op.kind)
    if known.in_place is not None or known.range or (not buffers and bool(op.attr("one_pass"))):
        return 0.0
    return value.bytes[value.layouts.closure.holds[mode.out], at].min(axis=0)


def lying_bytes(value: Value, layout: int, at: At) -> Num:
    """What a value occupies at least beside leaves, whichever kernel made it."""
    return 0.0 if value.in_place else value.bytes[layout, at]


def operand_bytes(kind: CostedKind, mode: CostedMode, at: At) -> Num:
    """What a kernel's operands occupy beside leaves at rest; those that may be slices of one value count once."""
    held: dict[int, Num] = {}
    for read in mode.reads:
        size = lying_bytes(kind.values[read.value], read.layout, at)
        held[read.value] = np.maximum(size, held[read.value]) if read.value in held else size
    return sum(held.values()) + kind.gathered_bytes(mode, at)


def left_behind(task: Task, load: Load, kind: CostedKind) -> Iterable[tuple[int, str, int, int]]:
    """Outputs of the graph: (value, port, port group, how many of them the stage makes)."""
    blocks = task.costed.blocks
    labels = [label for label in load.labels if blocks.kind_of[label] == kind.kind.name]
    for index, value in enumerate(kind.values):
        for port, group in value.exits:
            count = sum(blocks.rename[label][port] in blocks.graph.outputs for label in labels)
            if count:
                yield index, port, group, count


def left_bytes(task: Task, kind: CostedKind, used: Choice, index: int, spec: Spec, at: At) -> Num:
    """What a value that the step leaves behind in layout `spec` occupies: value number `index` of a block."""
    value = kind.values[index]
    layout = value.layouts.number[spec]
    if not task.costed.cost.assumptions.receive_buffers and index in used:
        layout = kind.modes[used[index]].out
    return lying_bytes(value, layout, at)


def works_on_bytes(task: Task, kind: CostedKind, mode: CostedMode, used: Choice, at: At) -> Num:
    """What a kernel of a block works on, its output among it."""
    size = kernel_bytes(task, kind, mode, at)
    if task.costed.cost.assumptions.receive_buffers:
        return size
    # What a transfer delivers is free, and keeps its source.
    sources = {used[read.value] for read in mode.reads if read.value in used}
    return size + sum(output_bytes(kind, kind.modes[source], at, buffers=False) for source in sources)


def kernel_bytes(task: Task, kind: CostedKind, mode: CostedMode, at: At) -> Num:
    """What a kernel works on at least, its output among it, whichever kernels made its operands."""
    buffers = task.costed.cost.assumptions.receive_buffers
    size = output_bytes(kind, mode, at, buffers=buffers)
    return size + (operand_bytes(kind, mode, at) if buffers else kind.gathered_bytes(mode, at))


def least_works_bytes(task: Task, load: Load) -> float:
    """What the largest kernel of a stage works on at least: of the values that every plan makes, each as it takes
    least. Raises `PlacementError` where one cannot be made."""
    most = 0.0
    for name, kind in task.costed.kinds.items():
        if load.counts[name]:
            usable = usable_modes(kind, task.at, task.keep)
            for value in needed_values(kind):
                modes = (kind.modes[number] for number in kind.makers[value] if usable[number])
                most = max(most, min((float(kernel_bytes(task, kind, mode, task.at)) for mode in modes), default=0.0))
    return most


def stage_uses(task: Task, stage: int, decisions: Decisions) -> tuple[Use, ...]:
    """What a stage holds under decisions in HBM and in each other memory: leaves at rest; in HBM also the larger of
    what the step leaves behind and what its largest kernel works on."""
    return _stage_uses(task, stage, decisions, _runs(task, decisions))


#: What blocks of a kind run, and the largest of these kernels with what it works on.
_Runs = tuple[Choice, tuple[str, float]]


def _runs(task: Task, decisions: Decisions) -> dict[str, _Runs]:
    """What the blocks that there are run under decisions, by kind: the same on all stages."""
    names = [name for name in task.costed.kinds if any(load.counts[name] for load in task.loads)]
    used = {name: needed_modes(task.costed.kinds[name], decisions.choices[name]) for name in names}
    return {name: (modes, _largest(task, task.costed.kinds[name], modes)) for name, modes in used.items()}


def _stage_uses(task: Task, stage: int, decisions: Decisions, runs: Mapping[str, _Runs]) -> tuple[Use, ...]:
    load = task.loads[stage]
    rests: dict[str, dict[str, float]] = {tier: {} for tier in task.costed.tiers}
    left: dict[str, float] = {}
    most = ("", 0.0)
    for name, count in load.counts.items():
        kind = task.costed.kinds[name]
        if count:
            used, largest = runs[name]
            for tier, entries in rests.items():
                entries.update(_resident(task, load, kind, used, tier))
            left.update(_left(task, load, kind, used, decisions))
            most = max(most, largest, key=lambda entry: entry[1])
    rest = tuple(left.items()) if sum(left.values()) > most[1] else (most,)
    near = Use(stage=stage, entries=(*rests.pop(HBM).items(), *rest), capacity_bytes=task.capacity_bytes)
    return near, *(
        Use(stage=stage, entries=tuple(entries.items()), capacity_bytes=task.room_bytes(tier), tier=tier)
        for tier, entries in rests.items()
    )


def _resident(task: Task, load: Load, kind: CostedKind, used: Choice, tier: str) -> Iterable[tuple[str, float]]:
    blocks, name = task.costed.blocks, kind.kind.name
    labels = [label for label in load.labels if blocks.kind_of[label] == name]
    held = {(read.leaf, read.spec) for mode in used.values() for read in kind.modes[mode].leaves if read.tier == tier}
    for leaf, spec in sorted(held):
        size = float(kind.leaf_bytes[(leaf, spec)][task.at]) * waves(task, kind, leaf)
        actual = dict.fromkeys(blocks.rename[label][leaf] for label in labels)
        if (name, leaf) in common_leaves(task.costed):
            yield from ((f"{each} as {show_spec(spec)}", size) for each in actual)
        else:
            yield f"{leaf} as {show_spec(spec)} × {len(actual)}", size * len(actual)


def _left(task: Task, load: Load, kind: CostedKind, used: Choice, decisions: Decisions) -> Iterable[tuple[str, float]]:
    for index, port, group, count in left_behind(task, load, kind):
        size = left_bytes(task, kind, used, index, decisions.boundary[group], task.at)
        yield f"{port} × {count}", float(size) * count


def _largest(task: Task, kind: CostedKind, used: Choice) -> tuple[str, float]:
    best = ("", 0.0)
    for number in used.values():
        mode = kind.modes[number]
        size = float(works_on_bytes(task, kind, mode, used, task.at))
        best = max(best, (f"operands and output of {mode.mode.op.name}", size), key=lambda entry: entry[1])
    return best


def block_use(task: Task, kind: CostedKind, choice: Choice) -> tuple[float, float]:
    """What a block of a kind adds to what rests on a rank (leaves that other blocks read left out), and what its
    largest kernel works on; infinite where nothing makes what is read, as `block_s` is."""
    try:
        used = needed_modes(kind, choice)
    except KeyError:
        return math.inf, math.inf
    modes = (kind.modes[mode] for mode in used.values())
    return float(held_bytes(task, kind, modes)), _largest(task, kind, used)[1]


def fullest(task: Task, decisions: Decisions) -> Use:
    """The fullest memory of all stages."""
    runs = _runs(task, decisions)
    uses = (use for stage in range(len(task.stages)) for use in _stage_uses(task, stage, decisions, runs))
    return max(uses, key=lambda use: use.share)


def overflow(task: Task, use: Use) -> CapacityError:
    """The error that says by how much, and because of which tensors, a stage does not fit."""
    largest = sorted(use.entries, key=lambda entry: (-entry[1], entry[0]))[:_NAMED]
    need, over = show_bytes(use.bytes), show_bytes(use.bytes - use.capacity_bytes)
    memory = "" if use.tier == HBM else f" of {use.tier.upper()}"
    return CapacityError(
        f"batch {task.costed.batches[task.at]}: the leanest plan found fills stage {use.stage} with {need}{memory} on "
        f"each GPU, {over} more than fits; the largest are "
        + ", ".join(f"{name} ({show_bytes(size)})" for name, size in largest if size),
        needs_bytes=use.bytes,
        where=f"mesh of {' × '.join(str(axis.size) for axis in task.mesh.axes) or '1'} GPUs a stage",
        expected=f"at most {show_bytes(use.capacity_bytes)}",
        hint="use more GPUs, more pipeline stages or a smaller batch",
    )


def least_bytes(task: Task) -> FloatArray:
    """A lower bound (b,) on what the leaves of the fullest stage occupy at rest, in all memories together, at every
    batch size: each leaf as small as it gets.

    Infinite where some kernel cannot run at all.
    """
    out = np.zeros((len(task.stages), len(task.costed.batches)))
    for name, kind in task.costed.kinds.items():
        least = least_rest_bytes(task, kind)
        for stage, load in enumerate(task.loads):
            out[stage] += load.counts[name] * least if load.counts[name] else 0.0
    return np.asarray(out.max(axis=0))


def least_rest_bytes(task: Task, kind: CostedKind) -> FloatArray:
    """What the leaves of one block occupy at least (b,); those that others read too are left out."""
    common = common_leaves(task.costed)
    sizes: dict[str, FloatArray] = {}
    reads = kind.shape.leaf_reads
    for (leaf, spec), possible in zip(reads.rests, reads.any_of(np.isfinite(kind.local_s))):
        if (kind.kind.name, leaf) not in common:
            size = np.where(possible, kind.leaf_bytes[leaf, spec] * waves(task, kind, leaf), np.inf)
            sizes[leaf] = np.minimum(sizes[leaf], size) if leaf in sizes else size
    return sum(sizes.values(), np.zeros(len(task.costed.batches)))
