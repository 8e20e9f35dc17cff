"""What a running search found, and how much it did."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rooflang.errors import CapacityError
from rooflang.place.plan import Plan
from rooflang.search.evaluate import evaluate
from rooflang.search.point import Evaluated, Found, Point, nearer
from rooflang.search.problem import Problem
from rooflang.sim.result import Overlap


@dataclass(kw_only=True)
class Tally:
    """Points, counts of the work done, and the nearest of the plans that did not fit."""

    evaluated: Evaluated = field(default_factory=Evaluated)
    points: list[Point] = field(default_factory=list)
    nearest: CapacityError | None = None

    def count(self, **more: int) -> None:
        """Add to the fields of `evaluated`."""
        self.evaluated = replace(
            self.evaluated, **{name: getattr(self.evaluated, name) + number for name, number in more.items()}
        )

    def simulate(
        self,
        problem: Problem,
        plan: Plan,
        batch: int,
        overlap: Overlap,
        *,
        bound_s: float | None = None,
        scope: str = "",
    ) -> Point:
        """Simulate a plan at a batch size. Raises `CapacityError` if it does not fit, which is noted."""
        self.count(simulated=1)
        try:
            return evaluate(problem, plan, batch, overlap=overlap, bound_s=bound_s, bound_scope=scope)
        except CapacityError as error:
            self.count(out_of_memory=1)
            self.nearest = nearer(self.nearest, error)
            raise

    def found(self, stopped_by: str) -> Found:
        return Found(points=tuple(self.points), evaluated=self.evaluated, stopped_by=stopped_by, nearest=self.nearest)
