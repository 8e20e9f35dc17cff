"""`annealing`: random primitives, taken when they help and sometimes when they do not, less and less often."""

from __future__ import annotations

import math
from random import Random

from rooflang.agent.scripted.desk import Desk
from rooflang.agent.session import Session

#: Relative loss that is taken with probability 1/e, at the beginning and at the end.
_HOT, _COLD = 1e-2, 1e-5

#: Moves by prediction for each simulation.
_MOVES = 24

#: Actions that are drawn one after the other without one that is taken before it gives up.
_DRAWS = 500


def annealing(desk: Desk, rng: Random) -> None:
    """From one opening after the other, each with its share of the simulations."""
    for session, share in desk.starts():
        _cool(desk, session, share, rng)


def _cool(desk: Desk, session: Session, share: int, rng: Random) -> None:
    """Moves go by predictions; after two dozen of them the best one so far is simulated, if it is new."""
    desk.judge(session)
    now_s = best_s = seen_s = desk.predicted_s(session)
    best, actions = session, desk.actions(session)
    steps = _MOVES * (share - 1)
    in_vain = 0
    for step in range(steps):
        if not actions or in_vain > _DRAWS:
            return
        move = desk.move(session, rng.choice(actions))
        heat = _HOT * (_COLD / _HOT) ** (step / steps)
        in_vain += 1
        if move is not None and rng.random() < math.exp(min(0.0, (now_s - move.predicted_s) / (heat * now_s))):
            session, now_s, in_vain = move.session, move.predicted_s, 0
            actions = desk.actions(session)
            if now_s < best_s:
                best, best_s = session, now_s
        if step % _MOVES == _MOVES - 1 and best_s < seen_s:
            desk.judge(best)
            seen_s = best_s
