"""The step time of a plan by the sums of its costs: what each stage computes and sends, nothing in each other's way.

It is the simulation without contention, waits and sends between stages, kind by kind of block, so that an edit of one
kind costs as little for a model of any depth.
"""

from __future__ import annotations

from dataclasses import dataclass

from rooflang.agent.world import Placed
from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.ir.blocks import BlockKind
from rooflang.ir.cut import OWNER, Spec
from rooflang.place.plan import BlockPlan
from rooflang.sim.result import Overlap


@dataclass(frozen=True, slots=True)
class _Sums:
    """Local and exposed network time of what all ranks run, and of what first coordinates run while others wait."""

    local_s: float = 0.0
    exposed_s: float = 0.0
    lone_local_s: float = 0.0
    lone_exposed_s: float = 0.0

    def plus(self, other: _Sums, times: int) -> _Sums:
        return _Sums(
            self.local_s + other.local_s * times,
            self.exposed_s + other.exposed_s * times,
            self.lone_local_s + other.lone_local_s * times,
            self.lone_exposed_s + other.lone_exposed_s * times,
        )

    def span_s(self, overlap: Overlap) -> float:
        """Seconds of the rank that takes longest: one that runs everything, or one that waits for it."""
        waited_s = self.lone_local_s + self.lone_exposed_s
        if overlap == "none":
            return self.local_s + self.exposed_s + waited_s
        own_s = max(self.local_s + self.lone_local_s, self.exposed_s + self.lone_exposed_s)
        return max(own_s, max(self.local_s, self.exposed_s) + waited_s)


class Estimator:
    """Estimates plans of one session; what block plans have in common is summed up once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[BlockPlan, _Sums]] = {}
        self._costs: dict[tuple[object, ...], Cost] = {}

    def step_s(self, placed: Placed, overlap: Overlap) -> float:
        """Seconds of a step: of the slowest stage, local and exposed network time hiding each other or not."""
        cost = placed.world.cost(placed.state.mesh)  # a joint product has a dim of its own
        sums = {kind.name: self._of(kind, placed.plan.blocks[kind.name], cost) for kind in placed.blocks.kinds}
        slowest = 0.0
        for labels in placed.plan.stages:
            total = _Sums()
            for name, count in placed.blocks.counts(labels).items():
                total = total.plus(sums[name], count)
            slowest = max(slowest, total.span_s(overlap))
        return slowest

    def _of(self, kind: BlockKind, plan: BlockPlan, cost: CostModel) -> _Sums:
        known = self._known.get(id(plan))
        if known is None or known[0] is not plan:
            known = plan, self._summed(kind, plan, cost)
            self._known[id(plan)] = known
        return known[1]

    def _summed(self, kind: BlockKind, plan: BlockPlan, cost: CostModel) -> _Sums:
        tensors = {t.name: t for op in kind.ops for t in (*op.operands, op.output)}
        total = _Sums()
        for mode in plan.modes.values():
            tiers = plan.tiers_of(mode)
            key: tuple[object, ...] = (cost.mesh, mode.op.name, mode.op.kind, mode.choices, tiers)
            if key not in self._costs:
                self._costs[key] = cost.mode(mode, tiers)
            total = total.plus(_sums(self._costs[key], alone=OWNER in mode.choices), 1)
        moved: set[tuple[str, Spec]] = set()
        for path in (*plan.paths.values(), *plan.exits.values()):
            for step in path:
                if step.free or (step.tensor, step.after) in moved:
                    continue
                moved.add((step.tensor, step.after))
                key = (cost.mesh, step.tensor, step.before, step.after)
                if key not in self._costs:
                    self._costs[key] = cost.transfer(tensors[step.tensor], step)
                total = total.plus(_sums(self._costs[key], alone=OWNER in step.after), 1)
        return total


def _sums(cost: Cost, *, alone: bool) -> _Sums:
    local_s, exposed_s = float(cost.local_s), float(cost.exposed_s)
    if alone:
        return _Sums(lone_local_s=local_s, lone_exposed_s=exposed_s)
    return _Sums(local_s=local_s, exposed_s=exposed_s)
