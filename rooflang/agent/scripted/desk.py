"""`Desk`: what a scripted agent has before it. Sessions branch, moves are predicted for nothing, simulations are
counted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rooflang.agent.actions import GRAPH, Action
from rooflang.agent.estimate import Estimator
from rooflang.agent.macros import run_macro
from rooflang.agent.proposals import candidates
from rooflang.agent.session import Session
from rooflang.errors import RooflangError, ValueRangeError
from rooflang.search.progress import Progress
from rooflang.units import show_seconds

#: (bytes that do not fit, step time in seconds): less is better, and what fits is better than what does not.
Score = tuple[float, float]

#: Parallelisms, each to be laid over one axis of the mesh.
PARALLELISMS = ("data_parallel", "tensor_parallel", "context_parallel", "expert_parallel")

#: Meshes whose parallelisms are looked into, and those openings of them that an agent goes on from.
MESHES, OPENINGS = 6, 4

#: Relative changes of a time below this are rounding.
LEAST_GAIN = 1e-6


class Spent(Exception):
    """The simulations or the time of an agent are spent. It never leaves `rooflang.agent.scripted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An action, the session after it and the merges that it allows, and the predicted step time there."""

    action: Action
    session: Session
    predicted_s: float


class Desk:
    """The initial graph, `budget` simulations, and the best plan so far that fits. `tiers`: may leaves rest outside of
    HBM? Raises `ValueRangeError` for a budget below 1, or a session in which something was done already."""

    def __init__(
        self, start: Session, *, budget: int, tiers: bool = False, progress: Progress | None = None, name: str = "agent"
    ) -> None:
        if budget < 1:
            raise ValueRangeError(f"{budget} simulations", where="--budget", expected="1 or more")
        if start.entries:
            raise ValueRangeError(f"{len(start.entries)} actions were taken", where="agent", expected="the start")
        self.start = start
        self.budget = budget
        self.simulations = 0
        self.seconds = 0.0
        self.best: tuple[Score, Session] | None = None
        self._tiers = tiers
        self._progress = progress or Progress(sink=lambda _: None)
        self._name = name
        self._estimator = Estimator()
        self._began_s = time.monotonic()

    def judge(self, session: Session) -> Score:
        """Simulate where a session stands. Raises `Spent` once nothing is left of the budget or the time limit."""
        if self.simulations >= self.budget or self._progress.expired:
            raise Spent
        self.simulations += 1
        sim = session.simulate(check_memory=False)
        score = (max(0.0, sim.peak_bytes - sim.capacity_bytes), sim.step_s)
        if sim.fits and (self.best is None or score < self.best[0]):
            self.best = score, session.branch()
            self.seconds = time.monotonic() - self._began_s
        self._say()
        return score

    def predicted_s(self, session: Session) -> float:
        """The step time where a session stands, by sums of costs."""
        return self._estimator.step_s(session.placed, session.overlap)

    # -- moves --------------------------------------------------------------------------------------------------------

    def meshes(self) -> list[Session]:
        """The initial graph on every mesh of at most two axes, for every number of stages."""
        found = []
        for action in candidates(self.start):
            if action.target == GRAPH:
                session = self._after(self.start, action)
                if session is not None:
                    found.append(session)
        return found or [self.start.branch()]

    def parallelisms(self, session: Session) -> list[Session]:
        """The session after one parallelism over one axis, wherever that can be."""
        found = []
        for axis in session.placed.state.mesh.axes:
            for macro in PARALLELISMS:
                trial = session.branch()
                try:
                    run_macro(trial, macro, {"axis": axis.name})
                except RooflangError:
                    continue
                found.append(trial)
        return found

    def starts(self) -> Iterator[tuple[Session, int]]:
        """Some openings, and for each its share of the simulations that are left."""
        openings = self.openings()[: max(1, min(OPENINGS, self.budget // 4))]
        for number, session in enumerate(openings):
            yield session, max(1, (self.budget - self.simulations) // (len(openings) - number))

    def openings(self, most: int = MESHES) -> list[Session]:
        """Meshes with parallelisms over their axes, as long as they are predicted to help; the most promising first.
        All meshes are tried with one parallelism, so many of them with more."""
        first = [min([mesh, *self.parallelisms(mesh)], key=self.predicted_s) for mesh in self.meshes()]
        return sorted(map(self._laid, sorted(first, key=self.predicted_s)[:most]), key=self.predicted_s)

    def _laid(self, session: Session) -> Session:
        while True:
            self._say()
            better = min([session, *self.parallelisms(session)], key=self.predicted_s)
            if not self.predicted_s(better) < self.predicted_s(session) * (1.0 - LEAST_GAIN):
                return session
            session = better

    def actions(self, session: Session) -> list[Action]:
        """The primitives that might apply, in an order that only the session decides."""
        return [
            action
            for action in candidates(session)
            if action.target != GRAPH and (self._tiers or not action.memory) and not _of_order(action)
        ]

    def near(self, session: Session, actions: Sequence[Action] | None = None) -> Iterator[Move]:
        """A move for each of the actions (default: all) that is taken and changes the plan."""
        for action in self.actions(session) if actions is None else actions:
            move = self.move(session, action)
            if move is not None:
                yield move

    def move(self, session: Session, action: Action) -> Move | None:
        """The action, and then every merge that it allows; None where it is refused or changes nothing."""
        self._say()
        after = self._after(session, action)
        if after is None:
            return None
        if not action.primitive.startswith("merge_"):
            with suppress(RooflangError):  # there may be nothing to merge, or something that does not divide
                run_macro(after, "merge_all", {})
        if after.plan == session.plan:
            return None
        return Move(action=action, session=after, predicted_s=self.predicted_s(after))

    def better(self, session: Session, action: Action) -> Session | None:
        """The session after a move, if that is predicted to help."""
        move = self.move(session, action)
        helps = move is not None and move.predicted_s < self.predicted_s(session) * (1.0 - LEAST_GAIN)
        return move.session if move is not None and helps else None

    def _after(self, session: Session, action: Action) -> Session | None:
        trial = session.branch()
        try:
            trial.apply(action)
        except RooflangError:
            return None
        return trial

    def _say(self) -> None:
        best = "" if self.best is None else f", best step {show_seconds(self.best[0][1])}"
        self._progress.say(f"{self._name}: {self.simulations} of {self.budget} simulations{best}")


def _of_order(action: Action) -> bool:
    """Is it about order, which no plan of the initial graph has anything to take back of?"""
    return action.primitive in ("add_control_edge", "remove_control_edge")
