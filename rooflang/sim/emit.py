"""From lifted operators to rows of a program: one operator for each team of rank classes that runs it together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from rooflang.cost.record import Cost
from rooflang.ir.tensor import Role
from rooflang.place.lower import LiftedOp, PlacedGraph, Value
from rooflang.place.storage import storage, stored
from rooflang.sim.book import Book
from rooflang.sim.program import CAP_ONE, Component, ProgramBuilder
from rooflang.sim.ranks import HOP, Ranks, Team, kind_of
from rooflang.sim.traffic import Axes, exchange_axes, owner_axes, routed_axes

#: Roles of which every wave in flight has its own.
PER_WAVE = (Role.KV_CACHE, Role.STATE)

#: From this many operators on, those that wait for all of them wait for a join instead, which takes no time.
_JOIN_ABOVE = 32

#: Per rank class, the operators that a value there waits for, or that read it there.
_ByClass = dict[int, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Crew:
    """A team at one operator: who of it runs it, whose memory holds what it writes, and what it loads."""

    team: Team
    runs: tuple[int, ...]
    writes: tuple[int, ...]


def _routes(lifted: LiftedOp) -> tuple[Axes, Axes]:
    """The axes over which an operator writes rows to others (a dispatch), and reads rows of others (a combine)."""
    if lifted.mode is None:
        return (), ()
    routed = routed_axes(lifted.mode)
    return (routed, ()) if lifted.mode.op.kind == "dispatch" else ((), routed)


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
        self._compute = [self.program.add_resource(f"compute of {ranks.name(c)}") for c in classes]
        self._port = [self.program.add_resource(f"memory of {ranks.name(c)}") for c in classes]
        self._link = [self.program.add_resource(name) for name in ranks.link_names]
        self._memory = [self._hbm(c, waves_resident) for c in classes]
        self._crews: dict[tuple[int, int], tuple[_Crew, ...]] = {}
        self._parts: dict[tuple[int, int], tuple[tuple[Component, ...], float]] = {}
        self._ready: dict[tuple[int, Value], _ByClass] = {}
        self._maker: dict[tuple[int, Value], dict[int, int]] = {}
        self._readers: dict[tuple[int, Value], _ByClass] = {}
        self._joins: dict[tuple[int, ...], list[int]] = {}

    def _hbm(self, number: int, waves: int) -> int:
        """HBM of a rank of the class, with its residents: weights once, caches and states for every wave in flight."""
        colour, stage = self.ranks.colour[number], self.ranks.stage[number]
        resident = [
            (r.name, self.book.size_bytes(r.tensor, r.spec, colour) * (waves if r.tensor.role in PER_WAVE else 1))
            for r in self.placed.residents
            if r.stage == stage and r.tier == "hbm"
        ]
        capacity = round(self.book.models[colour].cluster.device.hbm_bytes)
        return self.program.add_memory(f"HBM of {self.ranks.name(number)}", capacity, resident)

    # -- operators ----------------------------------------------------------------------------------------------------

    def emit(self, wave: int, lifted: LiftedOp, stream: Hashable, begins_after: int = -1) -> None:
        """Emit an operator of a wave on a stream of each rank (None: on none). If it has nothing to wait for, it waits
        for the end of wave `begins_after`."""
        scatters, gathers = _routes(lifted)
        made: dict[int, int] = {}
        for crew in self._crews_of(lifted):
            after = self._waits(wave, lifted, crew, gathers)
            if not after and begins_after >= 0:
                after = self._join(self.last[begins_after])
            parts, alpha_s = self._load(lifted, crew)
            op = self._row(lifted, wave, after, stream, crew.runs, parts, alpha_s)
            for c in crew.runs:
                self.work[c].append((op, self.book.cost(lifted, self.ranks.colour[c])))
            self._note_reads(wave, lifted, crew, op, gathers)
            made.update(dict.fromkeys(crew.writes, op))
        self._maker[wave, lifted.write] = made
        self._ready[wave, lifted.write] = {
            c: self._all_of(made, c, scatters) if scatters else [op] for c, op in made.items()
        }
        self.last[wave] = tuple(made.values())

    def _row(
        self,
        lifted: LiftedOp,
        wave: int,
        after: Iterable[int],
        stream: Hashable,
        runs: Iterable[int],
        parts: Sequence[Component],
        alpha_s: float,
    ) -> int:
        self.ops.append(lifted)
        self.waves.append(wave)
        self.streams.append(stream)
        streams = () if stream is None else [(c, stream) for c in runs]
        return self.program.add_op(lifted.name, after, streams, parts, alpha_s)

    def _join(self, ops: Sequence[int]) -> list[int]:
        """What to wait for instead of all of these operators."""
        if len(ops) <= _JOIN_ABOVE:
            return list(ops)
        key = tuple(ops)
        if key not in self._joins:
            self._joins[key] = [self._row(self.ops[key[0]], self.waves[key[0]], key, None, (), (), 0.0)]
        return self._joins[key]

    def _all_of(self, made: dict[int, int], number: int, axes: Axes) -> list[int]:
        """The operators of everybody in the group of a rank class along some axes."""
        return self._join(list(dict.fromkeys(made[c] for c in self._group(number, axes) if c in made)))

    def _group(self, number: int, axes: Axes) -> tuple[int, ...]:
        kind = kind_of(axes)
        return self.ranks.teams[kind][self.ranks.team_of[kind][number]].members

    def _waits(self, wave: int, lifted: LiftedOp, crew: _Crew, routed: Axes) -> list[int]:
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

    def _note_reads(self, wave: int, lifted: LiftedOp, crew: _Crew, op: int, routed: Axes) -> None:
        for index, value in enumerate(lifted.reads):
            readers = self._readers.setdefault((wave, value), {})
            for c in crew.runs:
                for holder in self._group(c, routed) if routed and index == 0 else (c,):
                    readers.setdefault(holder, []).append(op)

    # -- who runs an operator, and what it loads ----------------------------------------------------------------------

    def _crews_of(self, lifted: LiftedOp) -> tuple[_Crew, ...]:
        key = (id(lifted.mode or lifted.transfer), lifted.stage)
        if key not in self._crews:
            self._crews[key] = self._fresh_crews(lifted)
        return self._crews[key]

    def _fresh_crews(self, lifted: LiftedOp) -> tuple[_Crew, ...]:
        ranks, mode, transfer = self.ranks, lifted.mode, lifted.transfer
        axes: Axes = ()
        if mode is not None:
            axes = exchange_axes(mode, self.book.models[0].assumptions)
        elif transfer is not None and not transfer.free:
            axes = transfer.axes
        hop = mode is None and transfer is None
        teams = ranks.teams[HOP] if hop else ranks.teams[kind_of(axes)] if axes else ranks.alone
        owners = owner_axes(lifted.write[1])
        crews = []
        for team in teams:
            able = tuple(c for c in team.members if all(ranks.owns[c][axis] for axis in owners))
            if able and ranks.stage[team.members[0]] == lifted.stage:
                crews.append(_Crew(team=team, runs=able[:1] if hop else able, writes=able[1:] if hop else able))
        return tuple(crews)

    def _load(self, lifted: LiftedOp, crew: _Crew) -> tuple[tuple[Component, ...], float]:
        """The components of an operator and its α: what its ranks compute and what they load of the links."""
        costs = {c: self.book.cost(lifted, self.ranks.colour[c]) for c in crew.runs}
        key = (id(costs[crew.runs[0]]), id(crew))
        if key not in self._parts:
            self._parts[key] = self._fresh_load(costs, crew)
        return self._parts[key]

    def _fresh_load(self, costs: dict[int, Cost], crew: _Crew) -> tuple[tuple[Component, ...], float]:
        parts: list[Component] = []
        for c, cost in costs.items():
            for resource, seconds in ((self._compute[c], cost.compute_s), (self._port[c], cost.memory_s)):
                if seconds > 0:
                    parts.append((resource, seconds, CAP_ONE, False))
        first = costs[crew.runs[0]]
        for (level, _), shares in crew.team.shares.items():
            for member, link, count, slowness in shares:
                seconds = costs.get(member, first).levels_s.get(level, 0.0)
                if seconds > 0:
                    parts.append((self._link[link], seconds * slowness, CAP_ONE * count, True))
        levels = {level for cost in costs.values() for level in cost.levels_s}
        extra_s = max((crew.team.extra_s.get(level, 0.0) for level in levels), default=0.0)
        alpha_s = max(cost.alpha_s for cost in costs.values())
        return tuple(parts), alpha_s + extra_s

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
