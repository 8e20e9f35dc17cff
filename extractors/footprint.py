"""What a plan needs of each memory at all batch sizes at once, however its layers are cut into stages.

It is what `memory.stage_uses` says of one batch size and partition, without the names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.extractors.costed import CostedKind
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.memory import EVERY, held_bytes, left_bytes, waves, works_on_bytes
from rooflang.extractors.plans import needed_modes
from rooflang.extractors.task import Decisions, Stages, Task
from rooflang.ir.cut import Spec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockFootprint:
    """A block of one kind, all sizes (b,): what it adds to what rests in each memory, leaves that other blocks read too
    left out; these leaves, by name, layout and memory; what its largest kernel works on; and what it leaves behind
    where its outputs, by port, are those of the graph. Infinite where nothing makes what is read."""

    rests: Mapping[str, FloatArray]
    common: Mapping[tuple[str, Spec, str], FloatArray]
    works_on: FloatArray
    left: Mapping[str, FloatArray]

    @classmethod
    def of(cls, task: Task, kind: CostedKind, decisions: Decisions) -> BlockFootprint:
        """Under decisions for a task, which counts for its number of stages only."""
        none = np.zeros(len(task.costed.batches))
        try:
            used = needed_modes(kind, decisions.choices[kind.kind.name])
        except KeyError:
            return cls(rests={HBM: none + np.inf}, common={}, works_on=none + np.inf, left={})
        modes = [kind.modes[number] for number in used.values()]
        several = task.costed.blocks.shared_leaves
        return cls(
            rests={tier: none + held_bytes(task, kind, modes, tier, at=EVERY) for tier in task.costed.tiers},
            common={
                (read.leaf, read.spec, read.tier): kind.leaf_bytes[read.leaf, read.spec] * waves(task, kind, read.leaf)
                for mode in modes
                for read in mode.leaves
                if (kind.kind.name, read.leaf) in several
            },
            works_on=np.max([none, *(none + works_on_bytes(task, kind, mode, used, EVERY) for mode in modes)], axis=0),
            left={
                port: none + left_bytes(task, kind, used, index, decisions.boundary[group], EVERY)
                for index, value in enumerate(kind.values)
                for port, group in value.exits
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Footprint:
    """A plan of a task, which counts for its number of stages only, by kinds of block."""

    task: Task
    kinds: Mapping[str, BlockFootprint]

    @classmethod
    def of(cls, task: Task, decisions: Decisions) -> Footprint:
        """Of decisions."""
        kinds = task.costed.kinds
        return cls(task=task, kinds={name: BlockFootprint.of(task, kind, decisions) for name, kind in kinds.items()})

    def share(self, stages: Stages) -> FloatArray:
        """How full the fullest memory of all stages is, (b,); more than 1 does not fit."""
        worst = np.zeros(len(self.task.costed.batches))
        for labels in stages:
            for tier, size in self._held(labels).items():
                worst = np.maximum(worst, size / self.task.room_bytes(tier))
        return worst

    def _held(self, labels: Sequence[str]) -> dict[str, FloatArray]:
        """What a stage holds in each memory."""
        none = np.zeros(len(self.task.costed.batches))
        blocks, held, left, live = self.task.costed.blocks, {HBM: none}, none, none
        for name, count in blocks.counts(tuple(labels)).items():
            if count:
                for tier, size in self.kinds[name].rests.items():
                    held[tier] = held.get(tier, none) + count * size
                live = np.maximum(live, self.kinds[name].works_on)
        found: dict[tuple[str, Spec, str], FloatArray] = {}
        for label in labels:
            names, kind = blocks.rename[label], self.kinds[blocks.kind_of[label]]
            found.update({(names[leaf], spec, tier): size for (leaf, spec, tier), size in kind.common.items()})
            for port, size in kind.left.items():
                if names[port] in blocks.graph.outputs:
                    left = left + size
        for (_, _, tier), size in found.items():
            held[tier] = held.get(tier, none) + size
        return {**held, HBM: held[HBM] + np.maximum(left, live)}
