"""`random`: walks of random macros and primitives, each from a mesh drawn at random."""

from __future__ import annotations

from random import Random

from rooflang.agent.scripted.desk import Desk
from rooflang.agent.session import Session

#: Moves of a walk, and the share of them that are macros.
_LENGTH, _MACROS = 12, 0.4

#: Actions that are drawn before a walk is given up.
_DRAWS = 50


def random(desk: Desk, rng: Random) -> None:
    """Walk until the simulations are spent."""
    meshes = desk.meshes()
    while True:
        session = rng.choice(meshes)
        desk.judge(session)
        for _ in range(_LENGTH):
            after = _drawn(desk, session, rng)
            if after is None:
                break
            session = after
            desk.judge(session)


def _drawn(desk: Desk, session: Session, rng: Random) -> Session | None:
    if rng.random() < _MACROS:
        laid = desk.parallelisms(session)
        if laid:
            return rng.choice(laid)
    actions = desk.actions(session)
    for _ in range(min(_DRAWS, len(actions))):
        move = desk.move(session, rng.choice(actions))
        if move is not None:
            return move.session
    return None
