"""`Bench`: what an agent works at. Named sessions about one problem, one of them current, and counts of what was done.

Every method takes and returns plain data of bounded size, and raises typed errors only, so that any protocol can stand
in front of it; one that answers in several threads holds `turn` for each call. The problem is given when the bench is
made: an agent changes plans, and nothing that judges them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from rooflang.agent.actions import Action
from rooflang.agent.answers import PAGE, check_text, page_of, short
from rooflang.agent.macros import MACROS
from rooflang.agent.session import Session
from rooflang.errors import CapacityError, RefusedError, RooflangError, ValueRangeError
from rooflang.report.explanation import show_explanation
from rooflang.rules import rule, rule_names
from rooflang.rules.record import Ok
from rooflang.search.verify import certified
from rooflang.sim.result import SimResult

#: The session that a bench begins with, and how many there may be.
MAIN, MOST_BRANCHES = "main", 50


@dataclass(slots=True, kw_only=True)
class Counts:
    """Actions that were accepted, refused, and failed (not understood); simulations; seconds since the start."""

    accepted: int = 0
    refused: int = 0
    failed: int = 0
    simulations: int = 0
    started_s: float = field(default_factory=time.monotonic)

    def to_json(self) -> dict[str, float]:
        """The counts, with seconds in place of when they began."""
        data = asdict(self)
        return {**data, "seconds": time.monotonic() - data.pop("started_s")}


class Bench:
    """Sessions about one problem. `budget` is how many simulations there are, None: any number; `watch` is called with
    what a session is about to become; if it raises, nothing changes."""

    def __init__(
        self, session: Session, *, budget: int | None = None, watch: Callable[[Session], None] = lambda _: None
    ) -> None:
        self.start = session.branch()
        self.counts = Counts()
        self.budget = budget
        self.best: tuple[float, Session] | None = None
        self._sessions = {MAIN: session}
        self._current = MAIN
        self.turn = threading.RLock()
        self._seen: dict[bytes, SimResult | CapacityError] = {}
        self._watch = watch

    @property
    def session(self) -> Session:
        """The current one."""
        return self._sessions[self._current]

    # -- looking ----------------------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """The problem, and where the current session stands."""
        problem, plan = self.session.problem, self.session.plan
        return {
            "model": problem.name,
            "stage": problem.stage,
            "context": problem.context,
            "batch": self.session.world.batch,
            "hardware": problem.cluster.platform.name,
            "gpus": problem.cluster.gpus,
            "overlap": self.session.overlap,
            "assumptions": problem.assumptions.name,
            "layers": list(problem.blocks.sequence)[:PAGE],
            "mesh": {axis.name: axis.size for axis in plan.mesh.axes},
            "stages": len(plan.stages),
            "branch": self._current,
            "branches": sorted(self._sessions),
            "actions_taken": len(self.session.entries),
            "primitives": list(rule_names()),
            "macros": sorted(MACROS),
            "counts": self.counts.to_json(),
            "simulations_left": None if self.budget is None else self.budget - self.counts.simulations,
        }

    def show(self, filter: str = "", page: int = 1, size: int = PAGE) -> dict[str, Any]:
        """Lines of the placed graph in words that contain the filter."""
        wanted = check_text(filter, "filter").lower()
        lines = [short(line) for line in self.session.graph.show().splitlines() if wanted in line.lower()]
        found, place = page_of(lines, page, size)
        return {"lines": list(found), **place}

    def actions(self, filter: str = "", page: int = 1, size: int = PAGE, predict: bool = True) -> dict[str, Any]:
        """Actions that apply, with predicted step time and gain, best first; all words of the filter have to fit."""
        proposals = self.session.actions(check_text(filter, "filter"), predict=predict)
        found, place = page_of(proposals, page, size)
        rows = [{"action": str(p.action), "predicted_s": p.predicted_s, "gain": p.gain} for p in found]
        return {"actions": rows, **place}

    def primitive(self, name: str) -> dict[str, Any]:
        """What a primitive does: before, after, why it is sound, when it is refused, the fields of its action."""
        record = rule(check_text(name, "name"))
        fields = [field for field in Action.__struct_fields__ if field != "primitive"]
        return {
            "name": record.name,
            "before": record.before,
            "after": record.after,
            "summary": record.summary,
            "why_sound": record.why,
            "preconditions": list(record.preconditions),
            "fields": fields,
        }

    def journal(self, page: int = 1, size: int = PAGE) -> dict[str, Any]:
        """Lines of the journal of the current session."""
        found, place = page_of(self.session.journal.splitlines(), page, size)
        return {"lines": [short(line) for line in found], **place}

    # -- doing ------------------------------------------------------------------------------------------------------

    def check(self, action: str) -> dict[str, Any]:
        """May the action be taken now? Nothing changes."""
        verdict = self.session.check(check_text(action, "action"))
        if isinstance(verdict, Ok):
            return {"ok": True}
        return {"ok": False, "refusal": verdict.code, "reason": short(verdict.reason)}

    def apply(self, lines: str) -> dict[str, Any]:
        """Take actions, one a line, macros too. All of them are taken, or none."""
        session = self.session
        trial = session.branch()
        try:
            trial.run(check_text(lines, "lines"))
        except RefusedError:
            self.counts.refused += 1
            raise
        except RooflangError:
            self.counts.failed += 1
            raise
        taken = len(trial.entries) - len(session.entries)
        if not taken:
            raise ValueRangeError("no action", where="lines", expected="a primitive or a macro on each line")
        self._watch(trial)
        session.adopt(trial)
        self.counts.accepted += taken
        return {"taken": taken, "actions_taken": len(session.entries)}

    def undo(self, steps: int = 1) -> dict[str, Any]:
        """Take the last actions back."""
        trial = self.session.branch()
        trial.undo(steps)
        self._watch(trial)
        self.session.undo(steps)
        return {"actions_taken": len(self.session.entries)}

    def branch(self, name: str) -> dict[str, Any]:
        """Go on in another session that stands where this one does, or in the one of that name."""
        if not name.strip() or not name.isprintable() or len(name) > 60:
            raise ValueRangeError(f"{short(name)!r}", where="name", expected="1 to 60 characters on a line")
        if name not in self._sessions:
            if len(self._sessions) >= MOST_BRANCHES:
                raise ValueRangeError(f"more than {MOST_BRANCHES} branches", where="name", expected="one of them")
            self._sessions[name] = self.session.branch()
        self._current = name
        return {"branch": name, "branches": sorted(self._sessions), "actions_taken": len(self.session.entries)}

    # -- judging ----------------------------------------------------------------------------------------------------

    def simulate(self) -> dict[str, Any]:
        """Simulate a step of the current plan. A plan that was simulated before costs nothing."""
        sim = self._simulated()
        assert self.best is not None
        return {
            "step_s": sim.step_s,
            "tok_s_gpu": sim.tok_s_gpu,
            "tok_s_user": sim.tok_s_user,
            "bottleneck": sim.bottleneck,
            "peak_bytes": sim.peak_bytes,
            "capacity_bytes": sim.capacity_bytes,
            "groups_s": dict(sim.groups_s),
            "best_step_s": self.best[0],
        }

    def explain(self) -> dict[str, Any]:
        """What bounds the current plan: critical path, shares, what would help. It tells the step time, and so costs
        what `simulate` does."""
        self._simulated()
        lines = show_explanation(self.session.explain()).splitlines()
        return {"lines": [short(line) for line in lines[:200]]}

    def _simulated(self) -> SimResult:
        """The current plan, simulated once. Raises `CapacityError`, `ValueRangeError` where the budget is spent."""
        key = self.session.state_bytes()
        if key not in self._seen:
            if self.budget is not None and self.counts.simulations >= self.budget:
                raise ValueRangeError(
                    f"all {self.budget} simulations are spent", where="simulate", expected="plans simulated before"
                )
            self.counts.simulations += 1
            try:
                self._seen[key] = self.session.simulate()
            except CapacityError as error:
                self._seen[key] = error
        sim = self._seen[key]
        if isinstance(sim, CapacityError):
            raise sim.with_traceback(None)
        if self.best is None or sim.step_s < self.best[0]:
            self.best = sim.step_s, self.session.branch()
        return sim

    def report(self, *, verified: bool = True) -> dict[str, Any]:
        """What came of it: the counts, the fastest plan that was simulated as a point, and its journal. The plan is
        evaluated beside the unsharded graph, which takes some seconds, unless it is not to be `verified`."""
        if self.best is None:
            return {**self.counts.to_json(), "best": None, "journal": self.session.journal}
        _, best = self.best
        point = best.point()
        if verified:
            (point,) = certified(best.problem, [point])
        return {**self.counts.to_json(), "best": point.to_json(), "journal": best.journal}
