"""From a placed graph to the engine's arrays, on the build-time symmetry quotient: one representative rank a class.

All ranks of a stage run the same operators on shards of the same size, so partition refinement of the ranks (by
stage, device, communication groups and links) leaves one class a stage on a cluster of equal devices, and splits
exactly what can be told apart on another one. It is computed, not assumed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.ir.collector import no_cycles
from rooflang.place.lower import LiftedOp, PlacedGraph
from rooflang.sim.book import Book
from rooflang.sim.emit import Emitter
from rooflang.sim.fleet import Fleet, Override
from rooflang.sim.program import Program
from rooflang.sim.ranks import Ranks, ranks_of
from rooflang.sim.remote import tier_lanes
from rooflang.sim.result import Overlap
from rooflang.sim.schedule import Issue, one_batch, split_batch, two_batches
from rooflang.sim.traffic import Traffic
from rooflang.sim.uneven import Extents, on_rank, uneven_extents

#: Two operators, by name: the second waits for the first.
ControlEdge = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """A program and what its rows mean.

    Operator i of the program is `ops[i]` of wave `waves[i]` at cost `costs[i]` (on the first of its rank classes), on
    stream `streams[i]` of every rank that runs it (None: on none).
    `work[c]` are the operators, with their costs there, that a rank of class c runs.
    """

    program: Program
    ops: tuple[LiftedOp, ...]
    waves: tuple[int, ...]
    streams: tuple[Hashable, ...]
    costs: tuple[Cost, ...]
    work: tuple[tuple[tuple[int, Cost], ...], ...]
    ranks: Ranks

    def resource_kind(self, resource: int) -> str:
        """`compute` or `memory` of a device, or the fabric of a link."""
        classes = len(self.ranks.stage)
        if resource < 2 * classes:
            return "compute" if resource < classes else "memory"
        return self.ranks.link_names[resource - 2 * classes].split()[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """On which ranks a placed graph runs: the cost of each kind of rank, and the classes of ranks."""

    book: Book
    ranks: Ranks

    @classmethod
    def of(
        cls,
        placed: PlacedGraph,
        cost: CostModel,
        *,
        overrides: Sequence[Override] = (),
        explicit: bool = False,
        uneven: bool = False,
    ) -> Scene:
        """The scene for costs at one batch size. With `explicit` every rank is a class of its own; with `uneven`
        extents that do not divide are cut unevenly."""
        mesh, stages = placed.plan.mesh, len(placed.plan.stages)
        fleet = Fleet.of(cost.cluster, overrides)
        extents = uneven_extents(placed, cost) if uneven else [()] * mesh.gpus
        kinds: dict[tuple[int, Extents], int] = {}
        colour = tuple(
            kinds.setdefault((fleet.colour[rank], extents[rank % mesh.gpus]), len(kinds))
            for rank in range(mesh.gpus * stages)
        )
        ranks = ranks_of(
            cost.cluster,
            mesh,
            stages,
            Traffic.of(placed.plan, cost.assumptions),
            colour,
            tuple(overrides),
            tier_lanes(placed.plan),
            explicit,
        )
        models = [on_rank(replace(cost, cluster=fleet.clusters[device]), held) for device, held in kinds]
        return cls(book=Book(placed, models), ranks=ranks)


def build(
    placed: PlacedGraph,
    cost: CostModel,
    *,
    overlap: Overlap = "none",
    overrides: Sequence[Override] = (),
    explicit: bool = False,
    uneven: bool = False,
    control: Sequence[ControlEdge] = (),
) -> Built:
    """The program of one step. `cost` must be a model for one batch size; `control` are pairs of operators by name, of
    which the second waits for the first, beside those of the plan.

    Raises `PlacementError` for sizes that do not divide, and for a batch that two-batch overlap cannot halve,
    `UnknownNameError` for a control edge to nothing, `GraphError` for one that closes a cycle.
    """
    waves = len(placed.plan.stages)
    control = (*placed.plan.control, *control)
    if overlap != "two-batch":
        scene = Scene.of(placed, cost, overrides=overrides, explicit=explicit, uneven=uneven)
        return assemble(placed, scene, one_batch(placed), waves_resident=waves, control=control)
    half = Scene.of(placed, split_batch(cost, 2), overrides=overrides, explicit=explicit, uneven=uneven)
    return assemble(placed, half, two_batches(placed, half.book), waves_resident=2 * waves, control=control)


def assemble(
    placed: PlacedGraph,
    scene: Scene,
    issues: Iterable[Issue],
    *,
    waves_resident: int,
    begins_after: Mapping[int, int] | None = None,
    control: Sequence[ControlEdge] = (),
) -> Built:
    """The program that issues these operators in this order. Every rank holds caches and states of `waves_resident`
    waves; a wave in `begins_after` begins when the other one has ended."""
    after = begins_after or {}
    with no_cycles():
        emitter = Emitter(placed, scene.book, scene.ranks, waves_resident)
        for wave, lifted, stream in issues:
            emitter.emit(wave, lifted, stream, after.get(wave, -1))
        emitter.order(control)
        emitter.emit_values()
        program = emitter.program.build()
    costs = [Cost()] * len(emitter.ops)
    for work in reversed(emitter.work):
        for op, cost in work:
            costs[op] = cost
    return Built(
        program=program,
        ops=tuple(emitter.ops),
        waves=tuple(emitter.waves),
        streams=tuple(emitter.streams),
        costs=tuple(costs),
        work=tuple(tuple(work) for work in emitter.work),
        ranks=scene.ranks,
    )
