"""From a placed graph to the engine's arrays, on the build-time symmetry quotient: one representative rank a class.

All ranks of a stage run the same operators on shards of the same size, so partition refinement of the ranks (by
stage, communication groups and links) leaves one class a stage on a cluster of equal devices. It is computed here,
not assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.errors import PlacementError
from rooflang.ir.cut import show_spec
from rooflang.ir.tensor import Role
from rooflang.place.lower import LiftedOp, PlacedGraph, Value
from rooflang.place.storage import storage, stored
from rooflang.sim.costs import LiftedCosts
from rooflang.sim.program import CAP_ONE, Component, Program, ProgramBuilder
from rooflang.sim.symmetry import rank_classes

#: Roles of which every wave in flight has its own.
_PER_WAVE = (Role.KV_CACHE, Role.STATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A program and what its rows mean: operator i of the program is `ops[i]` at cost `costs[i]`."""

    program: Program
    ops: tuple[LiftedOp, ...]
    costs: tuple[Cost, ...]
    ranks_per_class: int


def build(placed: PlacedGraph, cost: CostModel) -> Built:
    """The program of one step. `cost` must be a model for one batch size. Raises `PlacementError` for sizes that do
    not divide."""
    classes = _certified_classes(placed, cost)
    builder = _Builder(placed, cost)
    for lifted in placed.ops:
        builder.op(lifted)
    builder.values()
    program = builder.program.build()
    return Built(program=program, ops=placed.ops, costs=tuple(builder.costs), ranks_per_class=classes)


def _certified_classes(placed: PlacedGraph, cost: CostModel) -> int:
    """Ranks per class, after refinement has shown that all ranks of a stage are alike."""
    mesh, stages = placed.plan.mesh, len(placed.plan.stages)
    ranks = mesh.gpus * stages
    sets = {op.transfer.axes for op in placed.ops if op.transfer is not None and not op.transfer.free}
    names = {axes: [mesh.axes[i].name for i in axes] for axes in sets}
    groups = {
        " ".join(names[axes]): [g for s in range(stages) for g in mesh.stage(s).groups(names[axes])]
        for axes in sorted(sets)
    }
    links = {level.name: list(range(i * ranks, (i + 1) * ranks)) for i, level in enumerate(cost.cluster.levels)}
    colours = [rank // mesh.gpus for rank in range(ranks)]
    found = rank_classes(colours, groups, links)
    if len(found.ranks) != stages:
        raise PlacementError(f"{len(found.ranks)} rank classes on {stages} stages: the ranks of a stage are not alike")
    return mesh.gpus


class _Builder:
    def __init__(self, placed: PlacedGraph, cost: CostModel) -> None:
        self.placed = placed
        self.cost = cost
        self.program = ProgramBuilder()
        self.costs: list[Cost] = []
        self.known = LiftedCosts(cost)
        self._resource: dict[tuple[int, str], int] = {}
        self._producer: dict[Value, int] = {}
        self._readers: dict[Value, list[int]] = {}
        self._memory = [self._stage_memory(stage) for stage in range(len(placed.plan.stages))]

    def _stage_memory(self, stage: int) -> int:
        """HBM of a rank of the stage, with its residents. In a pipeline every stage holds the KV of all waves in
        flight."""
        waves = len(self.placed.plan.stages)
        resident = [
            (r.name, round(self.cost.bytes(r.tensor, r.spec) * (waves if r.tensor.role in _PER_WAVE else 1)))
            for r in self.placed.residents
            if r.stage == stage and r.tier == "hbm"
        ]
        return self.program.add_memory(f"HBM of stage {stage}", round(self.cost.cluster.device.hbm_bytes), resident)

    def _res(self, stage: int, name: str) -> int:
        key = (stage, name)
        if key not in self._resource:
            self._resource[key] = self.program.add_resource(f"{name} of stage {stage}")
        return self._resource[key]

    def op(self, lifted: LiftedOp) -> None:
        cost = self._cost(lifted)
        self.costs.append(cost)
        stage = lifted.stage
        components: list[Component] = []
        for name, seconds in (("compute", cost.compute_s), ("memory", cost.memory_s)):
            if seconds > 0:
                components.append((self._res(stage, name), float(seconds), CAP_ONE, False))
        for level, seconds in cost.levels_s.items():
            if seconds > 0:
                components.append((self._res(stage, level), float(seconds), CAP_ONE, True))
        after = [self._producer[v] for v in lifted.reads if v in self._producer]
        index = self.program.add_op(
            lifted.name, after, ((stage, lifted.stream),), components, float(cost.alpha_s) if cost.levels_s else 0.0
        )
        for value in lifted.reads:
            self._readers.setdefault(value, []).append(index)
        self._producer[lifted.write] = index

    def _cost(self, lifted: LiftedOp) -> Cost:
        cost = self.known.of(lifted)
        if cost.memory_s == float("inf"):
            if lifted.mode is not None:
                specs = " ".join(show_spec(s) for s in lifted.mode.operands)
                what = f"{lifted.name} cannot run as {specs} → {show_spec(lifted.mode.out)}"
            else:
                what = f"{lifted.name} cannot lead to {show_spec(lifted.write[1])}"
            raise PlacementError(
                f"{what}: its extents do not divide",
                hint="choose mesh axes that divide the batch and the model's dims",
            )
        return cost

    def values(self) -> None:
        """Register every value that occupies memory of its own: it is alive until everything that reads it, or what
        shares its memory, has ended; to the end if the step leaves it behind."""
        lies = storage(self.placed, receive_buffers=self.cost.assumptions.receive_buffers)
        readers: dict[Value | None, list[int]] = {}
        for value, ops in self._readers.items():
            readers.setdefault(lies[value], []).extend(ops)
        kept = {lies[value] for value in self.placed.outputs}
        for value, tensor in stored(self.placed, lies).items():
            name, spec, stage = value
            producer = self._producer.get(value, -1)
            # What nobody reads is gone when it is made; without a consumer it would be taken for an output.
            consumers = readers.get(value) or [producer]
            size = round(self.cost.bytes(tensor, spec))
            self.program.add_tensor(name, self._memory[stage], size, producer, () if value in kept else consumers)
