"""`Task`: one extraction. `Extraction`: what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.errors import LimitReached, PlacementError
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.watch import ENDLESS, Watch
from rooflang.hw.mesh import Mesh
from rooflang.ir.blocks import Blocks
from rooflang.ir.cut import Spec
from rooflang.ir.layout import Mode
from rooflang.ir.tensor import Role, Tensor
from rooflang.place.plan import BlockPlan, Plan

#: What is minimised over the slowest stage: max(C, N), the step time when both overlap perfectly, or C + N, when
#: nothing overlaps.
Objective = Literal["max", "sum"]

Stages = tuple[tuple[str, ...], ...]

#: C and N of one block or of one stage, in seconds.
Seconds = tuple[float, float]

#: The mode (by number) that makes each value (by number) of a kind of block.
Choice = Mapping[int, int]

#: Every wave in flight has its own; a stage holds those of all waves, as many as there are stages.
PER_WAVE = frozenset({Role.KV_CACHE, Role.STATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A port that stage `stage` hands to the next one: its group and its tensor."""

    group: int
    tensor: Tensor
    stage: int


@dataclass(frozen=True, kw_only=True)
class Load:
    """What one stage runs: how many blocks of each kind, and what it sends."""

    labels: tuple[str, ...]
    counts: Mapping[str, int]
    sends: tuple[Send, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What to extract: one plan per kind of block, and one layout per port group, for the batch size number `at`.

    `stages` are the block labels of each pipeline stage; every stage uses the same plans. `keep(kind, mode)` says which
    modes may be used, `boundary` fixes the layout of port groups. `reserve_bytes` of HBM are to stay free. Work on it
    ends when `watch` says so.
    """

    costed: CostedGraph
    at: int
    stages: Stages
    objective: Objective = "max"
    keep: Callable[[str, Mode], bool] | None = None
    boundary: Mapping[int, Spec] = field(default_factory=dict)
    reserve_bytes: float = 0.0
    watch: Watch = ENDLESS

    def check(self) -> None:
        """Raise `LimitReached` once the work has to end."""
        if self.watch.expired:
            raise LimitReached(
                "a limit was reached before a plan was found", where="extraction", hint="allow more time or memory"
            )

    @property
    def mesh(self) -> Mesh:
        return self.costed.cost.mesh

    @property
    def capacity_bytes(self) -> float:
        """HBM of one rank that the plan may fill."""
        return self.costed.cost.cluster.device.hbm_bytes - self.reserve_bytes

    def room_bytes(self, tier: str) -> float:
        """What a rank's share of a memory holds."""
        return self.capacity_bytes if tier == HBM else self.costed.cost.cluster.tier(tier).capacity_bytes

    @property
    def all_room_bytes(self) -> float:
        """What all memories hold together in which leaves may rest."""
        return sum(self.room_bytes(tier) for tier in self.costed.tiers)

    def impossible(self) -> PlacementError:
        """The error for a task that no plan fulfils, however much memory it had."""
        return PlacementError(
            "no plan keeps to what is fixed",
            where=f"mesh of {' × '.join(str(axis.size) for axis in self.mesh.axes) or '1'} GPUs a stage",
            hint="allow more modes, or other layouts between blocks",
        )

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """What each stage runs."""
        return tuple(self._load(stage) for stage in range(len(self.stages)))

    @cached_property
    def slowest(self) -> tuple[Load, ...]:
        """The stages that can be the slowest: those that no other one exceeds in everything it runs and sends."""
        kept: list[Load] = []
        for load in self.loads:
            if not any(self._exceeds(other, load) for other in kept):
                kept = [other for other in kept if not self._exceeds(load, other)] + [load]
        return tuple(kept)

    def _exceeds(self, one: Load, other: Load) -> bool:
        """Does every plan take stage `one` at least as long as stage `other`?"""
        if any(count > one.counts[kind] for kind, count in other.counts.items()):
            return False
        mine = {send.group: send for send in one.sends}
        return all(
            send.group in mine
            and all(self.send_s(send, spec) <= self.send_s(mine[send.group], spec) for spec in borders)
            for send in other.sends
            for borders in [self.costed.borders[send.group]]
        ) and len({send.group for send in other.sends}) == len(other.sends)

    def _load(self, stage: int) -> Load:
        labels = self.stages[stage]
        return Load(
            labels=labels,
            counts=self.costed.blocks.counts(labels),
            sends=sends_of(self.costed.blocks, self.stages, stage),
        )

    def send_s(self, send: Send, spec: Spec) -> float:
        """Seconds of a send in that layout; infinite where the extents do not divide."""
        return float(self.sends_s(send, spec)[self.at])

    def sends_s(self, send: Send, spec: Spec) -> FloatArray:
        """As `send_s`, at all batch sizes."""
        return _sends_s(self.costed, send, spec)


def sends_of(blocks: Blocks, stages: Stages, stage: int) -> tuple[Send, ...]:
    """Ports that were made up to a stage and are read in a later one, as `place.lower` sends them."""
    made = {
        blocks.rename[label][port.name]
        for labels in stages[: stage + 1]
        for label in labels
        for port in blocks.by_name[blocks.kind_of[label]].outputs
    }
    found: dict[str, Send] = {}
    for label in (label for labels in stages[stage + 1 :] for label in labels):
        kind = blocks.by_name[blocks.kind_of[label]]
        for port in kind.inputs:
            actual = blocks.rename[label][port.name]
            if actual in made:
                found[actual] = Send(group=blocks.port_group[(kind.name, port.name)], tensor=port, stage=stage)
    return tuple(found.values())


@lru_cache(maxsize=4096)
def _sends_s(costed: CostedGraph, send: Send, spec: Spec) -> FloatArray:
    cost = costed.cost
    seconds = np.where(cost.fits(spec), cost.send(send.tensor, spec, send.stage).exposed_s, np.inf)
    return np.broadcast_to(seconds, (len(costed.batches),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """A plan by the numbers of a costed graph: one choice per kind of block, and the layout of every port group."""

    choices: Mapping[str, Choice]
    boundary: Mapping[int, Spec]


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """A plan, and how far from the best it can be.

    `local_s` (C) and `exposed_s` (N) are those of the slowest stage. `bound_s` is a lower bound on the objective of
    every plan of the task's scope: this mesh, these stages, one plan per kind of block, one layout per port group.
    `gap` is objective / bound − 1. `status` says how it ended: `optimal` (within the gap asked for), `limit`
    (of time or memory), `node limit`, `cut off` or `heuristic`. `rows`, `columns` and `binaries` are the size of the
    integer programme, 0 where none was needed.
    """

    mesh: Mesh
    stages: Stages
    objective: Objective
    decisions: Decisions
    block_plans: Mapping[str, BlockPlan]
    boundary: Mapping[int, Spec]
    local_s: float
    exposed_s: float
    bound_s: float
    status: str
    rows: int = 0
    columns: int = 0
    binaries: int = 0
    seconds: float = 0.0

    @property
    def value_s(self) -> float:
        """The objective: max(C, N) or C + N."""
        return combined(self.objective, self.local_s, self.exposed_s)

    @property
    def gap(self) -> float:
        return self.value_s / self.bound_s - 1.0 if self.bound_s > 0 else float("inf")

    def plan(self, origin: str) -> Plan:
        """The plan to place and simulate."""
        return Plan(mesh=self.mesh, stages=self.stages, blocks=self.block_plans, boundary=self.boundary, origin=origin)


def combined(objective: Objective, local_s: float, exposed_s: float) -> float:
    """The objective of a stage."""
    return max(local_s, exposed_s) if objective == "max" else local_s + exposed_s
