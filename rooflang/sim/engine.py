"""The discrete-event engine: operators as fluid flows that share resources.

Every resource has capacity 1. An operator holds components (resource, T, c); all active components of a resource
progress at the rate 1 / max(1, Σ c), so that T seconds of uncontended time take T seconds alone. A component leaves
its resource when its own work ends; the operator ends at max(compute, memory, network + α), and α holds no link.

Each resource keeps a virtual clock that advances at its rate: a component that enters at virtual time V ends at V + T,
whoever comes or goes in between, so an event costs O(log n). The clock is re-anchored only when the rate changes and
is reset when the resource falls idle, which keeps times free of accumulated rounding.

Time advances in rounds: all events up to t·(1 + 1e-12) happen together at t, every exit before every entry, and only
then are the rates set anew. No tie is ever broken by an id, so the result does not depend on the numbering.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from rooflang.ir.collector import no_cycles
from rooflang.sim.csr import FloatArray, IntArray
from rooflang.sim.program import CAP_ONE, Program

#: Events closer than this, relative to the time, are simultaneous: far above rounding, far below any real difference.
SIMULTANEOUS = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """When each operator ran. Arrays have shape (operators,), `component_end_s` has (components,): when each component
    left its resource.

    `first_round` and `last_round` are the rounds of its entry and exit (a round's exits come before its entries);
    `rounds` counts the rounds, `events` the ends of components and latencies.
    """

    start_s: FloatArray
    end_s: FloatArray
    first_round: IntArray
    last_round: IntArray
    component_end_s: FloatArray
    rounds: int
    events: int

    @property
    def makespan_s(self) -> float:
        """The end of the last operator; 0 for an empty program."""
        return float(self.end_s.max(initial=0.0))


def run(program: Program) -> Timeline:
    """Simulate `program` to its end. Exact semantics: see the module's text."""
    with no_cycles():
        return _Run(program).timeline()


class _Resource:
    """A resource and its virtual clock: virtual time is `virtual_s + rate * (t - anchor_s)`."""

    __slots__ = ("active", "anchor_s", "due_s", "load", "number", "rate", "virtual_s")

    def __init__(self, number: int) -> None:
        self.number = number
        self.active: list[tuple[float, int]] = []  # heap of (virtual end, component)
        self.load = 0  # Σ caps of the active components
        self.rate = 1.0
        self.anchor_s = 0.0
        self.virtual_s = 0.0
        self.due_s = -1.0  # time of its one valid entry in the calendar; -1: none

    def enter(self, now_s: float, component: int, seconds: float, cap: int) -> None:
        if self.active:
            virtual_s = self.virtual_s + self.rate * (now_s - self.anchor_s)
        else:
            self.anchor_s, self.virtual_s = now_s, 0.0
            virtual_s = 0.0
        heappush(self.active, (virtual_s + seconds, component))
        self.load += cap

    def rerate(self, now_s: float) -> float:
        """Set the rate for the present load and return the time at which the next component ends."""
        rate = CAP_ONE / self.load if self.load > CAP_ONE else 1.0
        if rate != self.rate:
            self.virtual_s += self.rate * (now_s - self.anchor_s)
            self.anchor_s, self.rate = now_s, rate
        return self.anchor_s + (self.active[0][0] - self.virtual_s) / rate

    def leave(self, until_s: float, caps: list[int]) -> list[int]:
        """Remove and return the components that end by `until_s`."""
        active, ended = self.active, []
        while active and self.anchor_s + (active[0][0] - self.virtual_s) / self.rate <= until_s:
            component = heappop(active)[1]
            self.load -= caps[component]
            ended.append(component)
        return ended


class _Run:
    """The state of one simulation. Its calendar holds (time, resource) and, for a latency, (time, ~operator)."""

    def __init__(self, program: Program) -> None:
        ops = program.op_count
        self.component_start: list[int] = program.component_start.tolist()
        self.component_op: list[int] = np.repeat(np.arange(ops), np.diff(program.component_start)).tolist()
        self.component_s: list[float] = program.component_s.tolist()
        self.component_cap: list[int] = program.component_cap.tolist()
        self.component_is_net: list[bool] = program.component_is_net.tolist()
        self.resources = [_Resource(number) for number in range(len(program.resource_names))]
        self.component_resource = [self.resources[number] for number in program.component_resource.tolist()]
        self.alpha_s: list[float] = program.op_alpha_s.tolist()
        successor_start, successor = program.successors()
        self.successor_start: list[int] = successor_start.tolist()
        self.successor: list[int] = successor.tolist()
        self.waiting: list[int] = np.diff(program.pred_start).tolist()
        self.running: list[int] = np.diff(program.component_start).tolist()
        self.network_end_s = [0.0] * ops
        self.start_s, self.end_s = [0.0] * ops, [0.0] * ops
        self.first_round, self.last_round = [0] * ops, [0] * ops
        self.component_end_s = [0.0] * len(self.component_s)
        self.calendar: list[tuple[float, int]] = []
        self.changed: list[_Resource] = []
        self.now_s, self.round, self.events = 0.0, 0, 0

    def timeline(self) -> Timeline:
        entering = [op for op, count in enumerate(self.waiting) if not count]
        while True:
            self._enter(entering)
            self._rerate()
            if not self._advance():
                break
            entering = self._exit(self._due_ops())
        return Timeline(
            start_s=np.array(self.start_s, np.float64),
            end_s=np.array(self.end_s, np.float64),
            first_round=np.array(self.first_round, np.int64),
            last_round=np.array(self.last_round, np.int64),
            component_end_s=np.array(self.component_end_s, np.float64),
            rounds=self.round,
            events=self.events,
        )

    def _enter(self, ops: list[int]) -> None:
        now_s, starts, resources = self.now_s, self.component_start, self.component_resource
        for op in ops:
            self.start_s[op] = self.network_end_s[op] = now_s
            self.first_round[op] = self.round
            first, last = starts[op], starts[op + 1]
            if first == last:
                heappush(self.calendar, (now_s + self.alpha_s[op], ~op))
            for component in range(first, last):
                resource = resources[component]
                resource.enter(now_s, component, self.component_s[component], self.component_cap[component])
                self.changed.append(resource)

    def _rerate(self) -> None:
        """Put the next end of every changed resource into the calendar, once."""
        for resource in self.changed:
            if resource.active:
                due_s = resource.rerate(self.now_s)
                if due_s != resource.due_s:
                    resource.due_s = due_s
                    heappush(self.calendar, (due_s, resource.number))
        self.changed.clear()

    def _advance(self) -> bool:
        """Move to the next event; False when nothing is left."""
        calendar = self.calendar
        while calendar:
            due_s, what = calendar[0]
            if what < 0 or self.resources[what].due_s == due_s:
                # Rounding can put an end a hair before the last round; time does not run backwards.
                self.now_s = max(self.now_s, due_s)
                self.round += 1
                return True
            heappop(calendar)
        return False

    def _due_ops(self) -> list[int]:
        """Free every component that ends in this round; return the operators that end with it."""
        calendar, until_s, ended = self.calendar, self.now_s * (1.0 + SIMULTANEOUS), []
        while calendar and calendar[0][0] <= until_s:
            what = heappop(calendar)[1]
            if what < 0:
                ended.append(~what)
                self.events += 1
                continue
            resource = self.resources[what]
            resource.due_s = -1.0
            self.changed.append(resource)
            for component in resource.leave(until_s, self.component_cap):
                self._end_component(component, until_s, ended)
        return ended

    def _end_component(self, component: int, until_s: float, ended: list[int]) -> None:
        op = self.component_op[component]
        self.component_end_s[component] = self.now_s
        self.events += 1
        if self.component_is_net[component]:
            self.network_end_s[op] = self.now_s
        self.running[op] -= 1
        if self.running[op]:
            return
        end_s = self.network_end_s[op] + self.alpha_s[op]
        if end_s > until_s:
            heappush(self.calendar, (end_s, ~op))
        else:
            ended.append(op)

    def _exit(self, ops: list[int]) -> list[int]:
        """Record the exits and return the operators that they release."""
        starts, successor, waiting, released = self.successor_start, self.successor, self.waiting, []
        for op in ops:
            self.end_s[op] = self.now_s
            self.last_round[op] = self.round
            for follower in successor[starts[op] : starts[op + 1]]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    released.append(follower)
        return released
