"""`greedy`: hill-climbing. From each of the best openings every primitive is taken that makes the step shorter."""

from __future__ import annotations

from random import Random

from rooflang.agent.scripted.desk import Desk, Move
from rooflang.agent.session import Session

#: Primitives that are simulated together.
TOGETHER = 8


def greedy(desk: Desk, rng: Random) -> None:
    """Climb from one opening after the other, each with its share of the simulations."""
    for session, share in desk.starts():
        _climb(desk, session, share)


def _climb(desk: Desk, session: Session, share: int) -> None:
    """In each round those primitives that are predicted to help are taken in the order of what they promise. The
    simulation is asked after some of them, and what it does not agree to is taken back; until a round brings nothing.
    """
    last = desk.simulations + share
    score = desk.judge(session)
    while desk.simulations < last:
        before, trial, taken = score, session, 0
        now_s = desk.predicted_s(session)
        moves = sorted((move for move in desk.near(session) if move.predicted_s < now_s), key=_promise)
        for move in [*moves, None]:
            after = None if move is None else desk.better(trial, move.action)  # others have been taken since
            trial, taken = (trial, taken) if after is None else (after, taken + 1)
            if taken == TOGETHER or (move is None and taken):
                found = desk.judge(trial)
                score, session = min((score, session), (found, trial), key=lambda each: each[0])
                trial, taken = session, 0
                if desk.simulations >= last:
                    return
        if score >= before:
            return


def _promise(move: Move) -> float:
    return move.predicted_s
