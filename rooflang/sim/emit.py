"""From lifted operators to rows of a program: one operator for each team of rank classes that runs it together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from rooflang.cost.record import Cost
from rooflang.cost.tiers import HBM
from rooflang.errors import UnknownNameError
from rooflang.ir.tensor import Role
from rooflang.place.lower import LiftedOp, PlacedGraph, Value
from rooflang.place.storage import storage, stored
from rooflang.sim.book import Book
from rooflang.sim.crews import Crew, Crews
from rooflang.sim.program import ProgramBuilder
from rooflang.sim.ranks import Ranks, kind_of
from rooflang.sim.traffic import Axes

#: Roles of which every wave in flight has its own.
PER_WAVE = (Role.KV_CACHE, Role.STATE)

#: From this many operators on, those that wait for all of them wait for a join instead, which takes no time.
_JOIN_ABOVE = 32

#: Per rank class, the operators that a value there waits for, or that read it there.
_ByClass = dict[int, list[int]]


class Emitter:
    """Emits operators wave by wave (a wave is one micro-batch on its way) and then the values that they leave."""

    def __init__(self, placed: PlacedGraph, book: Book, ranks: Ranks, waves_resident: int) -> None:
        self.placed = placed
        self.book = book
        self.ranks = ranks
        self.program = ProgramBuilder()
        self.ops: list[LiftedOp] = []
        self.waves: list[int] = []
        self.streams: list[Hashable] = []
        self.work: list[list[tuple[int, Cost]]] = [[] for _ in ranks.stage]
        self.last: dict[int, tuple[int, ...]] = {}
        classes = range(len(ranks.stage))
        for name in ("compute", "memory"):
            for c in classes:
                self.program.add_resource(f"{name} of {ranks.name(c)}")
        for name in ranks.link_names:
            self.program.add_resource(name)
        self._memory = self._residents(waves_resident)
        self._crews = Crews(book, ranks)
        self._ready: dict[tuple[int, Value], _ByClass] = {}
        self._maker: dict[tuple[int, Value], dict[int, int]] = {}
        self._readers: dict[tuple[int, Value], _ByClass] = {}
        self._joins: dict[tuple[int, ...], list[int]] = {}

    def _residents(self, waves: int) -> list[int]:
        """Add the memories: HBM of every class, with its residents (weights once, caches and states for every wave in
        flight), then a rank's share of each other memory that holds something. Return those of HBM."""
        by_tier = {tier: [r for r in self.placed.residents if r.tier == tier] for tier in self._tiers()}
        numbers: dict[str, list[int]] = {}
        for tier, leaves in by_tier.items():
            for c in range(len(self.ranks.stage)):
                colour, stage = self.ranks.colour[c], self.ranks.stage[c]
                resident = [
                    (
                        r.name,
                        self.book.size_bytes(r.tensor, r.spec, colour) * (waves if r.tensor.role in PER_WAVE else 1),
                    )
                    for r in leaves
                    if r.stage == stage
                ]
                cluster = self.book.models[colour].cluster
                room = cluster.device.hbm_bytes if tier == HBM else cluster.tier(tier).capacity_bytes
                name = f"{tier.upper()} of {self.ranks.name(c)}"
                numbers.setdefault(tier, []).append(self.program.add_memory(name, round(room), resident))
        return numbers[HBM]

    def _tiers(self) -> list[str]:
        return list(dict.fromkeys([HBM, *(r.tier for r in self.placed.residents)]))

    # -- operators ----------------------------------------------------------------------------------------------------

    def emit(self, wave: int, lifted: LiftedOp, stream: Hashable, begins_after: int = -1) -> None:
        """Emit an operator of a wave on a stream of each rank (None: on none). If it has nothing to wait for, it waits
        for the end of wave `begins_after`."""
        task = self._crews.of(lifted)
        made: dict[int, int] = {}
        for crew in task.crews:
            after = self._waits(wave, lifted, crew, task.gathers)
            if not after and begins_after >= 0:
                after = self._join(self.last[begins_after])
            op = self._row(lifted, wave, after, stream, crew)
            for c, cost in zip(crew.runs, crew.costs):
                self.work[c].append((op, cost))
            self._note_reads(wave, lifted, crew, op, task.gathers)
            for c in crew.writes:
                made[c] = op
        self._maker[wave, lifted.write] = made
        self._ready[wave, lifted.write] = {
            c: self._all_of(made, c, task.scatters) if task.scatters else [op] for c, op in made.items()
        }
        self.last[wave] = tuple(made.values())

    def _row(self, lifted: LiftedOp, wave: int, after: Iterable[int], stream: Hashable, crew: Crew | None) -> int:
        self.ops.append(lifted)
        self.waves.append(wave)
        self.streams.append(stream)
        if crew is None:
            return self.program.add_op(lifted.name, after)
        streams = () if stream is None else [(c, stream) for c in crew.runs]
        return self.program.add_op(lifted.name, after, streams, crew.parts, crew.alpha_s)

    def _join(self, ops: Sequence[int]) -> list[int]:
        """What to wait for instead of all of these operators."""
        if len(ops) <= _JOIN_ABOVE:
            return list(ops)
        key = tuple(ops)
        if key not in self._joins:
            self._joins[key] = [self._row(self.ops[key[0]], self.waves[key[0]], key, None, None)]
        return self._joins[key]

    def _all_of(self, made: dict[int, int], number: int, axes: Axes) -> list[int]:
        """The operators of everybody in the group of a rank class along some axes."""
        return self._join(list(dict.fromkeys(made[c] for c in self._group(number, axes) if c in made)))

    def _group(self, number: int, axes: Axes) -> tuple[int, ...]:
        kind = kind_of(axes)
        return self.ranks.teams[kind][self.ranks.team_of[kind][number]].members

    def _waits(self, wave: int, lifted: LiftedOp, crew: Crew, routed: Axes) -> list[int]:
        """What a crew waits for: whatever made what its ranks read. The rows of a combine lie on all of its group."""
        after: list[int] = []
        for index, value in enumerate(lifted.reads):
            ready = self._ready.get((wave, value))
            if ready is None:
                continue
            for c in crew.runs:
                if routed and index == 0:
                    makers = dict.fromkeys(op for other in self._group(c, routed) for op in ready.get(other, ()))
                    after += self._join(list(makers))
                else:
                    after += ready.get(c, ())
        return after

    def _note_reads(self, wave: int, lifted: LiftedOp, crew: Crew, op: int, routed: Axes) -> None:
        for index, value in enumerate(lifted.reads):
            readers = self._readers.setdefault((wave, value), {})
            for c in crew.runs:
                for holder in self._group(c, routed) if routed and index == 0 else (c,):
                    readers.setdefault(holder, []).append(op)

    def order(self, control: Sequence[tuple[str, str]]) -> None:
        """Let the second operator of each pair wait, on every rank and in every wave, for the first on that rank; where
        they run on different ranks, for all of it. Raises `UnknownNameError`."""
        if not control:
            return
        values = {op.name: op.write for op in self.placed.ops}
        for pair in control:
            for name in pair:
                if name not in values:
                    raise UnknownNameError("operator", name, values, where="control edge")
        for wave in dict.fromkeys(self.waves):
            for first, second in control:
                before, after = self._maker[wave, values[first]], self._maker[wave, values[second]]
                for c, op in after.items():
                    for earlier in [before[c]] if c in before else self._join(list(dict.fromkeys(before.values()))):
                        self.program.add_edge(earlier, op)

    # -- values -------------------------------------------------------------------------------------------------------

    def emit_values(self) -> None:
        """Register every value that occupies memory of its own on every rank class that holds it: it is alive until
        everything that reads it, or what shares its memory, has ended; to the end if the step leaves it behind."""
        lies = storage(self.placed, receive_buffers=self.book.models[0].assumptions.receive_buffers)
        own = stored(self.placed, lies)
        kept = {lies[value] for value in self.placed.outputs}
        readers: dict[tuple[int, Value], _ByClass] = {}
        for (wave, value), by_class in self._readers.items():
            home = lies[value]
            if home is not None:
                of_home = readers.setdefault((wave, home), {})
                for c, ops in by_class.items():
                    of_home.setdefault(c, []).extend(ops)
        for wave in dict.fromkeys(self.waves):
            for value, tensor in own.items():
                made = self._maker.get((wave, value), {})
                for c in self.ranks.of_stage(value[2]):
                    users = readers.get((wave, value), {}).get(c, [])
                    if c not in made and not users:  # its owner is another rank
                        continue
                    maker = made.get(c, -1)
                    size = self.book.size_bytes(tensor, value[1], self.ranks.colour[c])
                    # What nobody reads is gone when it is made; without a consumer it would be an output.
                    alive = () if value in kept else users or [maker]
                    self.program.add_tensor(value[0], self._memory[c], size, maker, alive, wait=False)
