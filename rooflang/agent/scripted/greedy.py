"""`greedy`: hill-climbing. From each of the best openings every primitive is taken that makes the step shorter."""

from __future__ import annotations

from random import Random

from rooflang.agent.scripted.desk import LEAST_GAIN, Desk
from rooflang.agent.session import Session


def greedy(desk: Desk, rng: Random) -> None:
    """Climb from one opening after the other, each with its share of the simulations."""
    for session, share in desk.starts():
        _climb(desk, session, share)


def _climb(desk: Desk, session: Session, share: int) -> None:
    """In each round those primitives that are predicted to help are taken in the order of what they promise, each if
    the simulation agrees; until none does."""
    last = desk.simulations + share
    score = desk.judge(session)
    while desk.simulations < last:
        before = score
        for move in sorted(desk.near(session), key=lambda move: move.predicted_s):
            again = desk.move(session, move.action)  # others may have been taken since
            if again is None or not again.predicted_s < desk.predicted_s(session) * (1.0 - LEAST_GAIN):
                continue
            if desk.simulations >= last:
                return
            found = desk.judge(again.session)
            if found < score:
                score, session = found, again.session
        if score >= before:
            return
