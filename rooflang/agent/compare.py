"""The same step laid by everybody: the grid, scripted agents, agents from outside, the search; at one batch size.

All are judged by the step time of the slowest stage, that is by throughput, in the same simulation, and by how far they
are from the lower bound that the search proved. What the search found is taken again in a session, primitive by
primitive, and has to come to the same graph and the same time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rooflang.agent.derivable import Derivability, derivable
from rooflang.agent.drive import drive
from rooflang.agent.journal import check_inputs, inputs_of
from rooflang.agent.replayed import replayed
from rooflang.agent.scripted import AGENTS, Desk, run
from rooflang.agent.session import Session
from rooflang.errors import CapacityError, LimitReached, UnknownNameError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.place.certificate import replay
from rooflang.search.effort import GAP, Effort
from rooflang.search.goal import Goal
from rooflang.search.method import Method, Search, Searched
from rooflang.search.outcome import outcome
from rooflang.search.point import Point, Result
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress

COMPARED_SCHEMA = "rooflang.compared/1"

#: Who is compared if nobody is named.
USUAL = ("greedy", "beam")

OPTIMIZE, GRID = "optimize", "grid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """What one of them found: its best plan, None where none was found that fits (`note` says why); how many plans were
    simulated for it, and the seconds that all of it took. `journal` leads to the plan."""

    name: str
    point: Point | None = None
    simulations: int = 0
    seconds: float = 0.0
    derivable: Derivability | None = None
    journal: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The contender as JSON data."""
        return {
            "name": self.name,
            "point": None if self.point is None else self.point.to_json(),
            "simulations": self.simulations,
            "seconds": self.seconds,
            "derivable": None if self.derivable is None else self.derivable.to_json(),
            "journal": self.journal,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All of them, the search last. `bound_s` is a lower bound on the step time for any number of stages, None where
    the search found nothing. `stopped_by` as in a result."""

    inputs: Mapping[str, Any]
    contenders: tuple[Contender, ...]
    bound_s: float | None
    bound_scope: str
    replayed: int | None
    stopped_by: str
    seconds: float

    def gap(self, point: Point) -> float | None:
        """How far a plan is above the bound; below 0 only for plans that are outside of its scope."""
        return None if self.bound_s is None else point.sim.step_s / self.bound_s - 1.0

    def to_json(self) -> dict[str, Any]:
        """The comparison as JSON data, schema `rooflang.compared/1`. The gaps of points are to the common bound."""
        rows = []
        for contender in self.contenders:
            row = contender.to_json()
            if contender.point is not None:
                row["point"]["gap"] = self.gap(contender.point)
            rows.append(row)
        return {
            "schema": COMPARED_SCHEMA,
            "inputs": dict(self.inputs),
            "contenders": rows,
            "bound_s": self.bound_s,
            "bound_scope": self.bound_scope,
            "replayed": self.replayed,
            "stopped_by": self.stopped_by,
            "seconds": self.seconds,
        }


def compare(
    model: str | Path | Model | Graph,
    *,
    hardware: str | Path | Cluster,
    gpus: int = 0,
    agents: Sequence[str] = USUAL,
    budget: int = 100,
    seed: int = 0,
    journals: Sequence[str | Path] = (),
    command: str = "",
    server: Sequence[str] = (),
    command_limit_s: float | None = None,
    gap: float = GAP,
    progress: Progress | None = None,
    **given: Any,
) -> Comparison:
    """Compare the grid, scripted `agents`, `journals` of others and an agent `command` with the search. The other
    parameters are those of `Session.start`; `server` are the words that start an MCP server of the same task.

    At a limit of `progress`, or Ctrl-C, those that are done are told. Raises typed errors for what cannot be compared:
    an unknown agent, a journal about something else.
    """
    for name in agents:
        if name not in AGENTS:
            raise UnknownNameError("agent", name[:60], AGENTS, where="--agents")
    if command and not server:
        raise ValueRangeError("no server for the agent to talk to", where="--run", expected="its command")
    start = Session.start(model, hardware=hardware, gpus=gpus, **given)
    table = _Table(start=start, budget=budget, seed=seed, progress=progress or Progress(sink=lambda _: None))
    outside = [(str(path), table.read(path, model, hardware)) for path in journals]  # before anything takes long
    try:
        if command:  # first, as it may turn out that it cannot be run
            table.command(command, server, command_limit_s, model, hardware)
        table.search(gap)
        table.grid()
        for name in dict.fromkeys(agents):
            table.scripted(name)
        for name, session in outside:
            table.journal(name, session)
    except KeyboardInterrupt:
        table.stopped_by = "interrupted"
    return table.comparison(agents=list(agents), budget=budget, seed=seed)


class _Table:
    """A comparison on its way."""

    def __init__(self, *, start: Session, budget: int, seed: int, progress: Progress) -> None:
        if budget < 1:
            raise ValueRangeError(f"{budget} simulations", where="--budget", expected="1 or more")
        self.start = start
        self.budget = budget
        self.seed = seed
        self.progress = progress
        self.stopped_by = ""
        self.best: Contender | None = None
        self.others: list[Contender] = []
        self.bound_s: float | None = None
        self.bound_scope = ""
        self.replayed: int | None = None
        self.tiers = True  # nothing is known to fit with all leaves in HBM yet

    @property
    def problem(self) -> Problem:
        return self.start.world.problem

    def comparison(self, **choices: Any) -> Comparison:
        """What there is by now."""
        inputs = {name: value for name, value in inputs_of(self.start).items() if name != "hash"}
        return Comparison(
            inputs=inputs | choices,
            contenders=(*self.others, *([] if self.best is None else [self.best])),
            bound_s=self.bound_s,
            bound_scope=self.bound_scope,
            replayed=self.replayed,
            stopped_by=self.stopped_by or self.progress.stopped_by,
            seconds=self.progress.elapsed_s,
        )

    # -- those who search by themselves -------------------------------------------------------------------------------

    def search(self, gap: float) -> None:
        """What `optimize` finds, taken again in a session."""
        result, self.best = self._searched(OPTIMIZE, "egraph", gap)
        if result is None or self.best.point is None:
            return
        if result.stopped_by in ("complete", "node limit"):  # else there are numbers of stages that nobody looked at
            bounds = [point.bound_s for point in result.points if point.bound_s is not None]
            self.bound_s, self.bound_scope = min(bounds, default=None), self.best.point.bound_scope
        session = self.start.branch()
        session.follow(self.best.point.certificate)
        found = session.point()
        if found.sim.step_s != self.best.point.sim.step_s:
            raise ArithmeticError(
                f"the certificate leads to a step of {found.sim.step_s} s in a session, and of"
                f" {self.best.point.sim.step_s} s in the search: a bug in one of them"
            )
        self.replayed = len(session.entries)
        self.tiers = any(block.tiers for block in session.plan.blocks.values())
        self.best = replace(self.best, journal=session.journal)
        if result.stopped_by == "interrupted":
            raise KeyboardInterrupt

    def grid(self) -> None:
        """What the paper's heuristic sweep finds."""
        result, found = self._searched(GRID, "grid", GAP)
        self.others.insert(0, found)
        if result is not None and result.stopped_by == "interrupted":
            raise KeyboardInterrupt

    def _searched(self, name: str, search: Search, gap: float) -> tuple[Result | None, Contender]:
        began_s = time.monotonic()
        try:
            method = Method(
                search=search, overlap=self.start.overlap, batch=(self.start.world.batch,), effort=Effort(gap=gap)
            )
            watch = self.progress.within()
            searched = Searched.all(method, [self.problem], watch)
            result = outcome(Goal(objective="throughput"), method, self.problem, searched, watch)
        except (CapacityError, LimitReached, ValueRangeError) as error:
            return None, Contender(name=name, seconds=time.monotonic() - began_s, note=error.what)
        (point,) = result.frontier
        laid = self.problem.for_script(point.certificate)
        plan = replay(point.certificate, laid.blocks, laid.cluster)
        contender = Contender(
            name=name,
            point=point,
            simulations=result.evaluated.simulated,
            seconds=time.monotonic() - began_s,
            derivable=derivable(plan, laid.blocks),
        )
        return result, contender

    # -- agents -------------------------------------------------------------------------------------------------------

    def scripted(self, name: str) -> None:
        """A scripted agent. Leaves may leave HBM for it only if the search had to move some, too."""
        began_s = time.monotonic()
        desk = Desk(self.start, budget=self.budget, tiers=self.tiers, progress=self.progress, name=name)
        try:
            run(name, desk, seed=self.seed)
        finally:  # Ctrl-C keeps what it has
            session = None if desk.best is None else desk.best[1]
            self._add(name, session, desk.simulations, time.monotonic() - began_s, note="no plan that fits was found")

    def read(self, path: str | Path, model: Any, hardware: Any) -> tuple[int, Session | None]:
        """(simulations, the best plan that fits) of a journal. Raises for one that is about something else."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueRangeError(f"cannot be read: {error}", where=str(path), expected="a journal") from error
        return self._replayed(text, str(path), model, hardware)

    def _replayed(self, text: str, where: str, model: Any, hardware: Any) -> tuple[int, Session | None]:
        best: tuple[float, Session] | None = None
        count = 0
        for row, session in replayed(text, where=where, model=model, hardware=hardware):
            if not count:
                self._check_same(session, where)
            count += 1
            self.progress.say(f"{where}: {row.line}")
            if row.fits and (best is None or row.step_s < best[0]):
                best = row.step_s, session.branch()
        return count, None if best is None else best[1]

    def _check_same(self, session: Session, where: str) -> None:
        stated = {name: value for name, value in inputs_of(self.start).items() if name != "hash"}
        check_inputs(session, stated, where=where)

    def journal(self, name: str, found: tuple[int, Session | None]) -> None:
        """An agent that left a journal: the best plan on its way."""
        simulations, session = found
        self._add(name, session, simulations, 0.0, note="nothing on its way fits")

    def command(self, command: str, server: Sequence[str], limit_s: float | None, model: Any, hardware: Any) -> None:
        """An agent that speaks the Model Context Protocol: the best plan that it had simulated."""
        told = drive(command, server, time_limit_s=limit_s)
        session = None
        if told.get("best") is not None:
            session = Session.replay(told["journal"], model=model, hardware=hardware)
        counts = int(told.get("simulations", 0)), float(told.get("seconds", 0.0))
        note = f"it had nothing simulated that fits (exit status {told['exit_status']}, ended by {told['ended_by']})"
        self._add(command, session, *counts, note=note)
        if told["ended_by"] == "interrupted":
            raise KeyboardInterrupt

    def _add(self, name: str, session: Session | None, simulations: int, seconds: float, *, note: str) -> None:
        if session is None:
            self.others.append(Contender(name=name, simulations=simulations, seconds=seconds, note=note))
            return
        self.others.append(
            Contender(
                name=name,
                point=session.point(),
                simulations=simulations,
                seconds=seconds,
                derivable=derivable(session.plan, session.placed.blocks),
                journal=session.journal,
            )
        )
