"""One plan at one batch size, ready to be looked at: simulated under any overlap, bracketed, explained, traced."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rooflang.cost.model import CostModel
from rooflang.place.lower import PlacedGraph, lower
from rooflang.place.plan import Plan
from rooflang.search.evaluate import evaluate
from rooflang.search.point import Point
from rooflang.search.problem import Problem
from rooflang.sim.explain import Explanation, explain
from rooflang.sim.plan_trace import write_plan_trace
from rooflang.sim.result import Bracket, Overlap
from rooflang.sim.simulate import bracket


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A plan for a problem, with `batch` requests in a step. Every method raises `PlacementError` for extents that do
    not divide."""

    problem: Problem
    plan: Plan
    batch: int

    @cached_property
    def placed(self) -> PlacedGraph:
        return lower(self.plan, self.problem.blocks)

    @cached_property
    def cost(self) -> CostModel:
        return self.problem.cost(self.plan.mesh, self.batch)

    def point(self, *, overlap: Overlap = "perfect", explicit: bool = False) -> Point:
        """Simulate it; with `explicit` every rank has operators of its own. Raises `CapacityError`."""
        return evaluate(self.problem, self.plan, self.batch, overlap=overlap, explicit=explicit)

    def bracket(self) -> Bracket:
        """Floor, schedule and ceiling: no overlap, two real micro-batches, perfect overlap. Raises `CapacityError`."""
        return bracket(self.placed, self.cost, tokens=self.problem.tokens)

    def explain(self, *, overlap: Overlap = "perfect") -> Explanation:
        """Critical path, what bounds it, and what would help."""
        return explain(self.placed, self.cost, tokens=self.problem.tokens, overlap=overlap)

    def write_trace(self, path: str | Path, *, overlap: Overlap = "perfect") -> None:
        """Write a trace for Perfetto and chrome://tracing (`.json`, or `.json.gz` to compress it), a process for each
        class of equal ranks. `perfect` overlap is a projection of the run without overlap, which is what the trace
        shows then."""
        write_plan_trace(path, self.placed, self.cost, overlap=overlap)
