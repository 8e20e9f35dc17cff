"""Sessions under random primitives: nothing but typed errors, and after each accepted one still the same function."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rooflang.agent import Session
from rooflang.errors import RefusedError, UnknownNameError
from rooflang.ir.graph import Graph
from rooflang.rules import rule_names

from ..place.graphs import small_v4
from .walks import GRAPHS, Tally, random_action, verified, walk


class Sessions(RuleBasedStateMachine):
    """Actions, undo, branches, journals, in any order; beside it what the state was after each action."""

    @initialize(graph=st.sampled_from(GRAPHS), gpus=st.sampled_from((2, 4, 8)))
    def begin(self, graph: Graph, gpus: int) -> None:
        self.graph = graph
        self.session = Session.start(graph, hardware="b300", gpus=gpus)
        self.states = [self.session.state_bytes()]
        self.other: tuple[Session, bytes] | None = None

    @rule(seed=st.integers(0, 2**32 - 1))
    def act(self, seed: int) -> None:
        action = random_action(self.session, Random(seed), Counter())
        try:
            self.session.apply(action)
        except (RefusedError, UnknownNameError):
            assert self.session.state_bytes() == self.states[-1]
        else:
            self.states.append(self.session.state_bytes())
            verified(self.session)

    @rule(steps=st.integers(0, 3))
    def undo(self, steps: int) -> None:
        steps = min(steps, len(self.states) - 1)
        self.session.undo(steps)
        del self.states[len(self.states) - steps :]

    @rule()
    def branch(self) -> None:
        self.other = (self.session.branch(), self.states[-1])

    @rule()
    def journal(self) -> None:
        again = Session.replay(self.session.journal, model=self.graph)
        assert again.state_bytes() == self.states[-1]

    @invariant()
    def stands_where_it_should(self) -> None:
        if hasattr(self, "session"):
            assert self.session.state_bytes() == self.states[-1]
            if self.other is not None:
                assert self.other[0].state_bytes() == self.other[1]

    def teardown(self) -> None:
        if hasattr(self, "session"):
            self.session.undo(len(self.session.entries))
            assert self.session.state_bytes() == self.states[0]


Sessions.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestSessions = Sessions.TestCase


def test_a_short_walk() -> None:
    tally = Tally()
    for seed in range(6):
        walk(GRAPHS[seed % len(GRAPHS)], Random(seed), 40, tally)
    assert tally.taken.total() > tally.refused.total() > 0


@pytest.mark.parametrize(("stage", "seed"), [("decode", 3), ("prefill", 4)])
def test_a_walk_over_a_model_can_be_followed(stage: str, seed: int) -> None:
    graph, rng, tally = small_v4(stage), Random(seed), Tally()
    session = Session.start(graph, hardware="b300", gpus=8)
    session.run("set_compute graph mesh=2x2 stages=2\ndata_parallel axis=x\nexpert_parallel axis=x,y")
    for _ in range(25):
        try:
            session.apply(random_action(session, rng, tally.tried))
        except RefusedError:
            tally.refused["any"] += 1
        else:
            tally.taken["any"] += 1
    assert tally.taken.total() > tally.refused.total()
    verified(session)
    other = Session.start(graph, hardware="b300", gpus=8)
    other.follow(session.certificate())
    assert other.certificate() == session.certificate()
    assert other.simulate(check_memory=False) == session.simulate(check_memory=False)


@pytest.mark.slow
def test_ten_thousand_primitives() -> None:
    tally, seed = Tally(), 0
    while tally.tried.total() < 10_000:
        walk(GRAPHS[seed % len(GRAPHS)], Random(seed), 40, tally)
        seed += 1
    for name in rule_names():
        print(f"{name}: {tally.taken[name]} of {tally.tried[name]} taken")
    print(f"refused: {dict(tally.refused.most_common())}")
    assert tally.taken.total() >= 0.4 * tally.tried.total()
    assert min(tally.taken[name] for name in rule_names()) >= 100
