"""Two slow engines to compare with: an exact one in fractions, and SimPy. They share no code with the real one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import simpy

from rooflang.sim.program import CAP_ONE, Program


@dataclass(slots=True)
class Flow:
    """A component in progress: the uncontended seconds that are left, and the share that it can use."""

    op: int
    resource: int
    left_s: Fraction
    cap: Fraction
    is_net: bool


@dataclass(slots=True)
class Exact:
    """What the exact run found, per operator."""

    start_s: list[Fraction]
    end_s: list[Fraction]
    first_round: list[int]
    last_round: list[int]
    rounds: int = 0


@dataclass(slots=True)
class State:
    now_s: Fraction = Fraction(0)
    flows: list[Flow] = field(default_factory=list)
    trailing: dict[int, Fraction] = field(default_factory=dict)  # operator whose components are done -> its end
    network_end_s: dict[int, Fraction] = field(default_factory=dict)


def components(program: Program, op: int) -> list[tuple[int, float, int, bool]]:
    rows = range(program.component_start[op], program.component_start[op + 1])
    return [
        (
            int(program.component_resource[row]),
            float(program.component_s[row]),
            int(program.component_cap[row]),
            bool(program.component_is_net[row]),
        )
        for row in rows
    ]


def predecessors(program: Program, op: int) -> list[int]:
    return [int(before) for before in program.pred[program.pred_start[op] : program.pred_start[op + 1]]]


def rates(flows: list[Flow]) -> dict[int, Fraction]:
    load: dict[int, Fraction] = defaultdict(Fraction)
    for flow in flows:
        load[flow.resource] += flow.cap
    return {resource: 1 / max(Fraction(1), total) for resource, total in load.items()}


def enter(program: Program, state: State, op: int) -> None:
    mine = [
        Flow(op, resource, Fraction(seconds), Fraction(cap, CAP_ONE), is_net)
        for resource, seconds, cap, is_net in components(program, op)
    ]
    state.flows += mine
    state.network_end_s[op] = state.now_s
    if not mine:
        state.trailing[op] = state.now_s + Fraction(float(program.op_alpha_s[op]))


def advance(program: Program, state: State) -> set[int] | None:
    """Move to the next event and end all that ends then; None when nothing is left."""
    rate = rates(state.flows)
    due = [state.now_s + flow.left_s / rate[flow.resource] for flow in state.flows] + list(state.trailing.values())
    if not due:
        return None
    step = min(due) - state.now_s
    state.now_s = min(due)
    for flow in state.flows:
        flow.left_s -= rate[flow.resource] * step
    ended = [flow for flow in state.flows if flow.left_s == 0]
    state.flows = [flow for flow in state.flows if flow.left_s != 0]
    busy = {flow.op for flow in state.flows}
    for flow in ended:
        if flow.is_net:
            state.network_end_s[flow.op] = state.now_s
    for op in {flow.op for flow in ended} - busy:
        end = state.network_end_s[op] + Fraction(float(program.op_alpha_s[op]))
        state.trailing[op] = max(end, state.now_s)
    over = {op for op, end in state.trailing.items() if end == state.now_s}
    for op in over:
        del state.trailing[op]
    return over


def exact_run(program: Program) -> Exact:
    """The semantics, step by step, in exact arithmetic: O(active) work per event."""
    count = program.op_count
    waits_for = [set(predecessors(program, op)) for op in range(count)]
    found = Exact([Fraction(-1)] * count, [Fraction(-1)] * count, [-1] * count, [-1] * count)
    state, idle = State(), set(range(count))
    while True:
        for op in [op for op in idle if not waits_for[op]]:
            idle.remove(op)
            enter(program, state, op)
            found.start_s[op], found.first_round[op] = state.now_s, found.rounds
        over = advance(program, state)
        if over is None:
            return found
        found.rounds += 1
        for op in over:
            found.end_s[op], found.last_round[op] = state.now_s, found.rounds
        for waiting in waits_for:
            waiting -= over


class SharedResource:
    """Processor sharing as one would write it in SimPy: at every change, update what is left of everybody."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.left_s: dict[simpy.Event, float] = {}
        self.cap: dict[simpy.Event, float] = {}
        self.changed_s = 0.0
        self.version = 0

    def use(self, seconds: float, cap: float) -> simpy.Event:
        self._update()
        done = self.env.event()
        self.left_s[done], self.cap[done] = seconds, cap
        self.env.process(self._wake())
        return done

    def _rate(self) -> float:
        return 1 / max(1.0, sum(self.cap.values()))

    def _update(self) -> None:
        passed = (self.env.now - self.changed_s) * self._rate()
        self.changed_s = self.env.now
        for user in self.left_s:
            self.left_s[user] -= passed

    def _wake(self) -> Generator[simpy.Event, None, None]:
        self.version += 1
        version = self.version
        yield self.env.timeout(max(0.0, min(self.left_s.values()) / self._rate()))
        if version != self.version:
            return
        self._update()
        for user in [user for user, left in self.left_s.items() if left <= 1e-12]:
            del self.left_s[user], self.cap[user]
            user.succeed()
        if self.left_s:
            self.env.process(self._wake())


def simpy_ends(program: Program) -> list[float]:
    """The end of every operator, by SimPy."""
    env = simpy.Environment()
    resources = [SharedResource(env) for _ in program.resource_names]
    ended = [env.event() for _ in range(program.op_count)]
    ends = [0.0] * program.op_count

    def local(resource: int, seconds: float, cap: int) -> Generator[simpy.Event, None, None]:
        yield resources[resource].use(seconds, cap / CAP_ONE)

    def network(parts: Sequence[simpy.Event], alpha_s: float) -> Generator[simpy.Event, None, None]:
        yield env.all_of(parts)
        yield env.timeout(alpha_s)

    def operator(op: int) -> Generator[simpy.Event, None, None]:
        yield env.all_of([ended[before] for before in predecessors(program, op)])
        mine = components(program, op)
        parts = [(is_net, env.process(local(resource, s, cap))) for resource, s, cap, is_net in mine]
        links = [part for is_net, part in parts if is_net]
        yield env.all_of([part for _, part in parts] + [env.process(network(links, float(program.op_alpha_s[op])))])
        ends[op] = env.now
        ended[op].succeed()

    for op in range(program.op_count):
        env.process(operator(op))
    env.run()
    return ends
