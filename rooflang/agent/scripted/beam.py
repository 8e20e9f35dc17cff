"""`beam`: kernel by kernel, those that take longest first, the few best ways so far are kept beside each other."""

from __future__ import annotations

from random import Random

from rooflang.agent.scripted.desk import LEAST_GAIN, Desk
from rooflang.agent.session import Session

#: Kernels that are simulated together.
TOGETHER = 4

#: Plans that are kept.
WIDTH = 3


def beam(desk: Desk, rng: Random) -> None:
    """From one opening after the other, each with its share of the simulations."""
    for session, share in desk.starts():
        _from(desk, session, share)


def _from(desk: Desk, session: Session, share: int) -> None:
    """For each kernel every way to run it is predicted for each plan that is kept, and the most promising plans are
    kept; after some that helped the first plan is simulated. It goes over all kernels until that changes nothing."""
    last = desk.simulations + share
    desk.judge(session)
    kept, told_s, helped = [session], desk.predicted_s(session), 0
    while True:
        before_s = told_s
        for kernel in [*_kernels(kept[0]), ""]:
            kept = _step(desk, kept, kernel) if kernel else kept
            found_s = desk.predicted_s(kept[0])
            if found_s < told_s * (1.0 - LEAST_GAIN):
                told_s, helped = found_s, helped + 1
            if helped == TOGETHER or (helped and not kernel):
                if desk.simulations >= last:
                    return
                desk.judge(kept[0])
                helped = 0
        if not told_s < before_s:
            return


def _step(desk: Desk, kept: list[Session], kernel: str) -> list[Session]:
    """The plans that are kept after a kernel: no two of the same predicted time."""
    found: dict[float, Session] = {}
    for session in kept:
        found.setdefault(desk.predicted_s(session), session)
        about = [action for action in desk.actions(session) if kernel in (action.target, action.reader)]
        for move in desk.near(session, about):
            found.setdefault(move.predicted_s, move.session)
    return [found[time_s] for time_s in sorted(found)[:WIDTH]]


def _kernels(session: Session) -> list[str]:
    """The operators of each kind of block, those that take longest in a step first."""
    placed = session.placed
    cost = session.world.cost(placed.state.mesh)
    counts = placed.blocks.counts()
    times = {
        mode.covers[-1]: float(cost.mode(mode).local_s) * counts[kind.name]
        for kind in placed.blocks.kinds
        for mode in placed.plan.blocks[kind.name].modes.values()
    }
    return sorted(times, key=lambda name: (-times[name], name))
