"""Scripted agents: what a session reaches without a mind, as a baseline for those that have one.

Each starts from the initial graph, takes macros and primitives past the same checks as everybody, and has so many
simulations; predictions by sums of costs are free. They are seeded: the same seed, the same plan.

They keep to what the search looks at: edits hold for all blocks of a kind, meshes have at most two axes, and leaves
rest in HBM unless they are told that no plan fits so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random

from rooflang.agent.scripted.annealing import annealing
from rooflang.agent.scripted.beam import beam
from rooflang.agent.scripted.desk import Desk, Spent
from rooflang.agent.scripted.greedy import greedy
from rooflang.agent.scripted.walks import random
from rooflang.errors import UnknownNameError

__all__ = ["AGENTS", "Desk", "run"]

AGENTS: Mapping[str, Callable[[Desk, Random], None]] = {
    "random": random,
    "greedy": greedy,
    "beam": beam,
    "annealing": annealing,
}


def run(name: str, desk: Desk, *, seed: int = 0) -> None:
    """Let an agent work until it is content, or its simulations are spent; `desk.best` is what it found. Raises
    `UnknownNameError`."""
    if name not in AGENTS:
        raise UnknownNameError("agent", name[:60], AGENTS, where="--agents")
    with suppress(Spent):
        AGENTS[name](desk, Random(seed))
