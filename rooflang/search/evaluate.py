"""From a plan to a point: lower, simulate, put into words, attach the certificate."""

from __future__ import annotations

from dataclasses import replace

from rooflang.place.certificate import certificate
from rooflang.place.grid import layer_labels
from rooflang.place.lower import lower
from rooflang.place.plan import Plan
from rooflang.place.words import describe
from rooflang.search.point import Point
from rooflang.search.problem import Problem
from rooflang.sim.result import ROUNDING, Overlap
from rooflang.sim.simulate import simulate as run_simulation


def evaluate(
    problem: Problem,
    plan: Plan,
    batch: int,
    *,
    overlap: Overlap,
    explicit: bool = False,
    bound_s: float | None = None,
    bound_scope: str = "",
) -> Point:
    """Simulate a plan at one batch size; `explicit` gives every rank its own operators. Raises `CapacityError` if it
    does not fit, `PlacementError` if extents do not divide."""
    problem = problem.of_plan(plan)
    plan, blocks = replace(plan, apart=problem.apart), problem.blocks
    placed = lower(plan, blocks)
    cost = problem.cost(plan.mesh, batch)
    sim = run_simulation(placed, cost, tokens=problem.tokens, overlap=overlap, explicit=explicit)
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
        bound_s=None if bound_s is None else _held(bound_s, sim.step_s),
        bound_scope=bound_scope,
    )


def _held(bound_s: float, step_s: float) -> float:
    """The bound, which a simulated step may undercut by rounding and no more."""
    if bound_s > step_s * (1.0 + ROUNDING):
        raise ArithmeticError(f"a step of {step_s} s is below its lower bound of {bound_s} s: a bug in the bound")
    return min(bound_s, step_s)
