"""From a plan to a point: lower, simulate, put into words, attach the certificate."""

from __future__ import annotations

from rooflang.place.certificate import certificate
from rooflang.place.grid import layer_labels
from rooflang.place.lower import lower
from rooflang.place.plan import Plan
from rooflang.place.words import describe
from rooflang.search.point import Point
from rooflang.search.problem import Problem
from rooflang.sim.result import Overlap
from rooflang.sim.simulate import simulate as run_simulation


def evaluate(
    problem: Problem,
    plan: Plan,
    batch: int,
    *,
    overlap: Overlap,
    bound_s: float | None = None,
    bound_scope: str = "",
) -> Point:
    """Simulate a plan at one batch size. Raises `CapacityError` if it does not fit, `PlacementError` if extents do
    not divide."""
    blocks = problem.blocks
    placed = lower(plan, blocks)
    sim = run_simulation(placed, problem.cost(plan.mesh, batch), tokens=problem.tokens, overlap=overlap)
    layers = set(layer_labels(blocks))
    return Point(
        batch=batch,
        pp=len(plan.stages),
        pp_partition=tuple(sum(label in layers for label in labels) for labels in plan.stages),
        mesh=tuple(axis.size for axis in plan.mesh.axes),
        sim=sim,
        plan=describe(plan, blocks),
        certificate=certificate(plan, blocks),
        origin=plan.origin,
        bound_s=bound_s,
        bound_scope=bound_scope,
    )
