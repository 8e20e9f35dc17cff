"""`Session`: a plan made one primitive at a time, with its simulated time after each step.

    >>> import rooflang
    >>> from rooflang.agent import Session
    >>> session = Session.start(graph, hardware="b300", gpus=8)
    >>> session.graph.split_kernel("up", "ffn")             # a primitive by its name; RefusedError says why not
    >>> session.simulate().step_s                           # what it did
    >>> session.apply(session.actions("down")[0].action)    # or from the list of what applies

The API, in short:

- `Session.start(model, hardware=…, gpus=…, stage=…, context=…, batch=…, assumptions=…, overlap=…)`
- `graph` → `GraphView`: every primitive of the paper's Tables 1 and 2 by its own name; `operator(name).set_compute(…)`,
  `tensor(name).set_memory(…)`; `show()`.
- `check(action) → Ok | Refusal`; `apply(action) → Applied`, or `RefusedError` and nothing has changed. An action is an
  `Action`, a line of text (`"split_kernel up dim=ffn axis=x"`) or JSON data; what is none raises `UnknownNameError` or
  `ValueRangeError`.
- `actions(filter, predict=…, limit=…) → [Proposal]`: what applies where, with the predicted step time after it.
- `simulate() → SimResult` (raises `CapacityError`), `point() → Point`, `explain() → Explanation`.
- `undo(steps=1)`, `branch() → Session`, `adopt(branch)`; `run(text)`: lines of a journal, macros too.
- `follow(certificate)`: the actions that lead to a plan of the search.
- `journal` → text that `Session.replay` reads; `save(path)`, `Session.load(path)`.
- `plan`, `problem`, `entries`, `certificate()`, `state_bytes()`: where it stands.

A session edits its own state and nothing else: model, hardware, assumptions and costs are frozen when it starts, and
the files that it writes name their hashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from rooflang.agent.actions import Action, action_from_json, checked, parse_action
from rooflang.agent.primitives import apply
from rooflang.agent.world import Placed, World
from rooflang.assumptions import Assumptions
from rooflang.errors import PlacementError, RefusedError, UnknownNameError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.blocks import split_blocks
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.notebook import html_table
from rooflang.place.certificate import certificate, replay
from rooflang.place.plan import Plan
from rooflang.rules.record import Ok, Refusal, Verdict
from rooflang.search.point import Point
from rooflang.search.prepared import Prepared
from rooflang.search.problem import Problem
from rooflang.sim.result import Overlap, SimResult
from rooflang.sim.simulate import simulate as run_simulation

if TYPE_CHECKING:
    from rooflang.agent.graph import GraphView
    from rooflang.agent.proposals import Proposal
    from rooflang.sim.explain import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a journal: an action that was taken, and the words of the macro that it was taken for."""

    action: Action
    macro: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """An action that was taken, and the number of actions until then."""

    action: Action
    number: int


class Session:
    """A placed graph and its history. Start one with `Session.start`."""

    def __init__(self, world: World, overlap: Overlap, history: tuple[tuple[Entry | None, Placed], ...]) -> None:
        self.base = world
        self.overlap: Overlap = overlap
        self._history = history
        self._simulated: dict[tuple[Overlap, bool], SimResult] = {}

    @classmethod
    def start(
        cls,
        model: str | Path | Model | Graph,
        *,
        hardware: str | Path | Cluster,
        gpus: int = 0,
        stage: str = "decode",
        context: int = 0,
        batch: int | None = None,
        assumptions: str | Assumptions = "physical",
        overlap: Overlap = "perfect",
    ) -> Session:
        """The initial graph: every operator whole on every GPU. `batch` requests are in a step (default: as the graph
        is written, one for a model). Raises a typed error for what does not fit together."""
        problem = Problem.of(model, hardware=hardware, gpus=gpus, stage=stage, context=context, assumptions=assumptions)
        return cls.about(problem, batch=batch, overlap=overlap)

    @classmethod
    def about(cls, problem: Problem, *, batch: int | None = None, overlap: Overlap = "perfect") -> Session:
        """The initial graph of a problem."""
        if overlap not in get_args(Overlap):
            raise UnknownNameError("overlap", str(overlap), get_args(Overlap), where="overlap")
        world = World(problem=problem, batch=problem.own_batch if batch is None else problem.check_batch(batch))
        return cls(world, overlap, ((None, world.initial()),))

    # -- where it stands --------------------------------------------------------------------------------------------

    @property
    def world(self) -> World:
        """What the session cannot change, and the graph that it lays."""
        return self.placed.world

    @property
    def placed(self) -> Placed:
        """The state, its blocks and its plan."""
        return self._history[-1][1]

    @property
    def plan(self) -> Plan:
        return self.placed.plan

    @property
    def problem(self) -> Problem:
        """The problem, with its blocks grouped as the session lays them alike."""
        return replace(self.world.problem, alike=self.placed.state.alike)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The actions that led here, in order."""
        return tuple(entry for entry, _ in self._history if entry is not None)

    def _repr_html_(self) -> str:
        """For notebooks: the actions that led here."""
        rows = [(str(number), str(entry.action), entry.macro) for number, entry in enumerate(self.entries, 1)]
        return html_table(f"{self.problem.name} on {self.problem.cluster}", ("#", "action", "for"), rows)

    @property
    def graph(self) -> GraphView:
        """The placed graph, with every primitive by its name."""
        from rooflang.agent.graph import GraphView

        return GraphView(self)

    def certificate(self) -> dict[str, Any]:
        """The plan as the script of primitives that `rooflang verify` replays."""
        return certificate(self.plan, self.placed.blocks)

    def state_bytes(self) -> bytes:
        """All of the state as JSON: equal bytes, equal states."""
        return msgspec.json.encode([self.certificate(), [entry.action for entry in self.entries]])

    # -- primitives -------------------------------------------------------------------------------------------------

    def check(self, action: Action | str | Mapping[str, Any]) -> Verdict:
        """May the action be taken now? `Ok` carries the action, a `Refusal` the code and the reason."""
        taken = as_action(action)
        try:
            apply(self.placed, taken)
            return Ok(result=taken)
        except RefusedError as error:
            return Refusal(code=error.refusal, reason=f"{error.what}; {error.hint}" if error.hint else error.what)

    def apply(self, action: Action | str | Mapping[str, Any], *, macro: str = "") -> Applied:
        """Take an action. Raises `RefusedError` with the rule's code and reason; nothing has changed then. `macro` are
        the words under which the journal lists it."""
        taken = as_action(action)
        self._take(Entry(action=taken, macro=macro), apply(self.placed, taken))
        return Applied(action=taken, number=len(self._history) - 1)

    def _take(self, entry: Entry, placed: Placed) -> None:
        self._history = (*self._history, (entry, placed))
        self._simulated = {}

    def undo(self, steps: int = 1) -> None:
        """Take the last actions back. Raises `ValueRangeError` where there are not so many."""
        if not 0 <= steps < len(self._history):
            raise ValueRangeError(f"undo {steps}", where="session", expected=f"0 to {len(self._history) - 1}")
        self._history = self._history[: len(self._history) - steps]
        self._simulated = {}

    def branch(self) -> Session:
        """Another session that stands where this one does, and goes its own way from here."""
        return Session(self.base, self.overlap, self._history)

    def run(self, text: str) -> None:
        """Take the actions of some lines of text, macros too, as in a journal's body. Raises at the first that does not
        apply; those before it stay taken."""
        from rooflang.agent.journal import run_line

        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip() and not line.strip().startswith("#"):
                run_line(self, line, where=f"line {number}")

    def follow(self, script: Mapping[str, Any]) -> None:
        """Take, from the initial graph, the actions that lead to the plan of a certificate. Raises `PlacementError` for
        what is none of this graph, `ValueRangeError` where something was done already."""
        from rooflang.agent.follow import actions_of

        if self.entries:
            raise ValueRangeError(
                f"{len(self.entries)} actions were taken", where="follow", expected="the initial graph"
            )
        laid = self.base.problem.for_script(script)
        plan = replay(script, laid.blocks, laid.cluster)
        trial = self.branch()
        whole = split_blocks(laid.laid)
        for action in actions_of(plan, laid.blocks, whole):
            trial.apply(action, macro="certificate")
        found, wanted = trial.certificate(), certificate(plan, laid.blocks)
        if found != wanted:
            raise PlacementError("its actions lead to another plan", where="certificate")
        self.adopt(trial)

    def adopt(self, other: Session) -> None:
        """Stand where a branch of this session stands. Raises `ValueRangeError` for a session that is none."""
        if other.base is not self.base or other._history[: len(self._history)] != self._history:
            raise ValueRangeError("it is no branch of this session", where="adopt", expected="what branch() returned")
        self._history, self._simulated = other._history, {}

    def actions(self, filter: str = "", *, predict: bool = True, limit: int = 0) -> list[Proposal]:
        """What can be done now: see `proposals.proposals`."""
        from rooflang.agent.proposals import proposals

        return proposals(self, filter, predict=predict, limit=limit)

    # -- what it costs ----------------------------------------------------------------------------------------------

    def prepared(self) -> Prepared:
        """The plan at the session's batch size, to be simulated, bracketed, explained or traced."""
        return Prepared(problem=self.problem, plan=self.plan, batch=self.world.batch)

    def simulate(self, *, overlap: Overlap | None = None, check_memory: bool = True) -> SimResult:
        """Simulate a step of the plan. Raises `CapacityError`, naming the largest tensors, when it does not fit."""
        mode = overlap or self.overlap
        key = (mode, check_memory)
        if key not in self._simulated:
            ready = self.prepared()
            self._simulated[key] = run_simulation(
                ready.placed, ready.cost, tokens=self.world.problem.tokens, overlap=mode, check_memory=check_memory
            )
        return self._simulated[key]

    def point(self) -> Point:
        """The plan as a point of a result: numbers, words, certificate. Raises `CapacityError`."""
        return self.prepared().point(overlap=self.overlap)

    def explain(self) -> Explanation:
        """What bounds the step: its critical path, shares by operator and bound, and what would help."""
        return self.prepared().explain(overlap=self.overlap)

    # -- files ------------------------------------------------------------------------------------------------------

    @property
    def journal(self) -> str:
        """The session as text that `Session.replay` reads."""
        from rooflang.agent.journal import write

        return write(self)

    @classmethod
    def replay(cls, text: str, **given: Any) -> Session:
        """The session at the end of a journal; `given` as in `journal.replay`."""
        from rooflang.agent.journal import replay

        *_, (_, session) = replay(text, **given)
        return session

    def save(self, path: str | Path) -> None:
        """Write the session to a file, all of it or nothing: JSON, with the hashes of what it is about."""
        from rooflang.agent.saved import encode

        target = Path(path)
        partial = target.with_name(f".{target.name}.partial")
        try:
            partial.write_bytes(encode(self))
            partial.replace(target)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise ValueRangeError(f"cannot be written: {error}", where=str(path), expected="a file") from error

    @classmethod
    def load(cls, path: str | Path, **given: Any) -> Session:
        """The session of a file; `given` as in `saved.load`."""
        from rooflang.agent.saved import load

        return load(path, **given)


def as_action(action: Action | str | Mapping[str, Any]) -> Action:
    """An action from a record, a line of text or JSON data. Raises `UnknownNameError` or `ValueRangeError`."""
    if isinstance(action, Action):
        return checked(action)
    if isinstance(action, str):
        return parse_action(action)
    return action_from_json(action)
