"""The beginning of a stage while values are still on their way to it.

A stage may begin with one of the values that it is sent before it has the others: with the hidden state, while the
choice of an indexer is under way. Until it has them all, two first-in, first-out streams run side by side, the sends
and the operators of the stage, and nothing but the ways into its ranks is used by both. That is a program of a dozen
operators, which the engine runs, once for each batch size that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rooflang.cost.record import Cost
from rooflang.sim.csr import FloatArray, IntArray
from rooflang.sim.engine import run
from rooflang.sim.program import CAP_ONE, Component, Program, ProgramBuilder

#: An operator's cost, and which sends it waits for, by number.
Waiting = tuple[Cost, frozenset[int]]


class Arrival:
    """What `sends`, one after the other, and the `ops` that begin meanwhile, the last of which waits for the last send,
    make of each other.

    Per batch size (b,), and 0 where it was not asked for: `idle_s` is for how long the stage waits once it has begun,
    `sends_s` and `ops_s` how much longer the sends and the operators take than alone. `late` (sends, b) is how many of
    the operators have ended when a send begins.
    """

    def __init__(self, sends: Sequence[Cost], ops: Sequence[Waiting], batches: tuple[int, ...]) -> None:
        self.idle_s: FloatArray = np.zeros(batches)
        self.sends_s: FloatArray = np.zeros(batches)
        self.ops_s: FloatArray = np.zeros(batches)
        self.late: IntArray = np.zeros((len(sends), *batches), np.int64)
        self._sends = [_Row(cost, batches) for cost in sends]
        self._ops = [(_Row(cost, batches), waits) for cost, waits in ops]
        possible = [row.alone_s < np.inf for row in (*self._sends, *(row for row, _ in self._ops))]
        self._open = np.all(possible, axis=0)

    def ask(self, ats: Sequence[int]) -> None:
        """Work out some of the batch sizes, by number; where extents do not divide there is nothing to find."""
        for at in ats:
            if self._open[at]:
                self._open[at] = False
                self._run(at)

    def _run(self, at: int) -> None:
        timeline = run(self._program(at))
        count = len(self._sends)
        took = timeline.end_s - timeline.start_s
        start, end = timeline.start_s[count:], timeline.end_s[count:]
        self.idle_s[at] = np.sum(start[1:] - end[:-1])
        self.sends_s[at] = np.sum(took[:count]) - sum(row.alone_s[at] for row in self._sends)
        self.ops_s[at] = np.sum(took[count:]) - sum(row.alone_s[at] for row, _ in self._ops)
        # At one moment exits come before entries.
        self.late[:, at] = np.searchsorted(timeline.last_round[count:], timeline.first_round[:count], side="right")

    def _program(self, at: int) -> Program:
        builder = ProgramBuilder()
        numbers: dict[str, int] = {}

        def parts(row: _Row) -> Iterator[Component]:
            for name, seconds, is_net in row.parts:
                if seconds[at] > 0:
                    if name not in numbers:
                        numbers[name] = builder.add_resource(name)
                    yield numbers[name], float(seconds[at]), CAP_ONE, is_net

        sends = [builder.add_op("send", (), ["sends"], parts(row), float(row.alpha_s[at])) for row in self._sends]
        for row, waits in self._ops:
            builder.add_op("operator", [sends[n] for n in waits], ["stage"], parts(row), float(row.alpha_s[at]))
        return builder.build()


class _Row:
    """A cost as components by the names of resources, and α. Compute and memory port of a rank have one user at a time,
    so that one component stands for the slower of them, and the way out of a rank loads what the way in does."""

    def __init__(self, cost: Cost, batches: tuple[int, ...]) -> None:
        network = ((name, np.broadcast_to(seconds, batches), True) for name, seconds in cost.levels_s.items())
        self.parts = (("the rank itself", np.broadcast_to(cost.local_s, batches), False), *network)
        self.alpha_s: FloatArray = np.broadcast_to(cost.alpha_s if cost.levels_s else 0.0, batches)
        self.alone_s: FloatArray = np.broadcast_to(cost.local_s + cost.exposed_s, batches)
