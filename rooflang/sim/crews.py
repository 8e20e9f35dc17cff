"""Who runs an operator together, what it loads, and over which axes it sends or fetches rows."""

from __future__ import annotations

from dataclasses import dataclass

from rooflang.cost.record import Cost
from rooflang.place.lower import LiftedOp
from rooflang.sim.book import Book
from rooflang.sim.program import CAP_ONE, Component
from rooflang.sim.ranks import HOP, Ranks, Team, kind_of
from rooflang.sim.remote import lane_name
from rooflang.sim.traffic import Axes, exchange_axes, owner_axes, routed_axes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crew:
    """A team at one operator: the rank classes that run it, with its cost on each; those whose memory holds what it
    writes; and what it loads altogether."""

    runs: tuple[int, ...]
    costs: tuple[Cost, ...]
    writes: tuple[int, ...]
    parts: tuple[Component, ...]
    alpha_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """An operator on the ranks of its stage. It writes rows to the others of its group along `scatters` (a dispatch),
    or reads rows of theirs along `gathers` (a combine, or what brings all shards to one rank)."""

    crews: tuple[Crew, ...]
    scatters: Axes
    gathers: Axes


class Crews:
    """The tasks of all operators of a placed graph; layers of one kind on one stage share theirs."""

    def __init__(self, book: Book, ranks: Ranks) -> None:
        classes = len(ranks.stage)
        self._book = book
        self._ranks = ranks
        self._port_of = classes  # resources: compute of every class, its memory port, then the links
        self._first_link = 2 * classes
        self._known: dict[tuple[object, ...], Task] = {}

    def of(self, lifted: LiftedOp) -> Task:
        """The task of an operator. Raises `PlacementError` where its extents do not divide."""
        # The plan holds its modes and transfers, so that their ids stay theirs; hashing them is far slower.
        shared = lifted.mode or lifted.transfer
        if shared is None:
            key: tuple[object, ...] = (lifted.stage, lifted.tensor, lifted.write)
        else:
            key = (lifted.stage, id(shared), lifted.tensor.name)
        if key not in self._known:
            self._known[key] = self._fresh(lifted)
        return self._known[key]

    def _fresh(self, lifted: LiftedOp) -> Task:
        ranks, mode, transfer = self._ranks, lifted.mode, lifted.transfer
        axes: Axes = ()
        routed: Axes = ()
        collected: Axes = ()
        if mode is not None:
            axes, routed = exchange_axes(mode, self._book.models[0].assumptions), routed_axes(mode)
        elif transfer is not None and not transfer.free:
            axes = transfer.axes
            collected = axes if transfer.collective in ("gather", "reduce") else ()
        hop = mode is None and transfer is None
        teams = ranks.teams[HOP] if hop else ranks.teams[kind_of(axes)] if axes else ranks.alone
        owners = owner_axes(lifted.write[1])
        crews = []
        for team in teams:
            able = tuple(c for c in team.members if all(ranks.owns[c][axis] for axis in owners))
            if able and ranks.stage[team.members[0]] == lifted.stage:
                runs, writes = (able[:1], able[1:]) if hop else (able, able)
                crews.append(self._crew(lifted, team, runs, writes))
        dispatches = mode is not None and mode.op.kind == "dispatch"
        scatters, gathers = (routed, ()) if dispatches else ((), routed or collected)
        return Task(crews=tuple(crews), scatters=scatters, gathers=gathers)

    def _crew(self, lifted: LiftedOp, team: Team, runs: tuple[int, ...], writes: tuple[int, ...]) -> Crew:
        costs = {c: self._book.cost(lifted, self._ranks.colour[c]) for c in runs}
        parts: list[Component] = []
        for c, cost in costs.items():
            for resource, seconds in ((c, cost.compute_s), (self._port_of + c, cost.memory_s)):
                if seconds > 0:
                    parts.append((resource, seconds, CAP_ONE, False))
        first = costs[runs[0]]
        for lane, shares in team.shares.items():
            name = lane_name(lane)
            for member, link, count, slowness in shares:
                seconds = costs.get(member, first).levels_s.get(name, 0.0)
                if seconds > 0:
                    parts.append((self._first_link + link, seconds * slowness, CAP_ONE * count, True))
        levels = {level for cost in costs.values() for level in cost.levels_s}
        extra_s = max((team.extra_s.get(level, 0.0) for level in levels), default=0.0)
        return Crew(
            runs=runs,
            costs=tuple(costs.values()),
            writes=writes,
            parts=tuple(parts),
            alpha_s=max(cost.alpha_s for cost in costs.values()) + extra_s,
        )
