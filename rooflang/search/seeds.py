"""The plans of the RoofLang paper's grid as choices of a costed e-graph: with them known, a search never ends below the
grid, whatever ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from rooflang.cost.tiers import HBM
from rooflang.errors import PlacementError
from rooflang.extractors.costed import CostedGraph, CostedKind
from rooflang.extractors.shape import Shape
from rooflang.extractors.task import Choice, Decisions
from rooflang.hw import Mesh
from rooflang.ir.cut import OWNER, Spec, replicated
from rooflang.ir.layout import Mode
from rooflang.place.grid import grid_plan
from rooflang.place.plan import Plan
from rooflang.search.problem import Problem
from rooflang.search.sizes import grid_shapes


def grid_seeds(problem: Problem, costed: CostedGraph, stages: int) -> Iterator[tuple[Plan, Decisions]]:
    """The grid's plans on the mesh of a costed graph, and as decisions, with every replica running what one owner would
    for all of them: that takes no longer and sends less (see `CostedGraph`). A mesh stands for those with the same axes
    in another order, too. Left out are plans that something given rules out."""
    blocks = problem.unjoined.blocks  # the grid lays all that there is, joint products that nothing reads among it
    for dp, cp, pp in grid_shapes(problem, [stages]):
        if sorted(size for size in (dp, cp) if size > 1) == sorted(axis.size for axis in costed.cost.mesh.axes):
            graph = problem.graph.resized(batch=dp * cp) if problem.has_batch else problem.graph
            try:
                plan = grid_plan(graph, problem.cluster, dp=dp, cp=cp, pp=pp, blocks=blocks)
            except PlacementError:
                continue
            order = _order(plan.mesh, costed.cost.mesh)
            found = None if order is None else _decisions(costed, plan, order)
            if found is not None:
                yield plan, found


def _order(mesh: Mesh, other: Mesh) -> tuple[int, ...] | None:
    """Which axis of a mesh is each one of the other, by number; None where they lie on other levels of the fabric."""
    left = list(range(len(mesh.axes)))
    order = []
    for axis in other.axes:
        same = next((number for number in left if mesh.axes[number].factors == axis.factors), None)
        if same is None:
            return None
        left.remove(same)
        order.append(same)
    return tuple(order)


def _decisions(costed: CostedGraph, plan: Plan, order: tuple[int, ...]) -> Decisions | None:
    """A plan by the numbers of a costed graph whose axes are those of the plan in that order; None where it has a mode
    or a layout that the graph lacks."""
    choices: dict[str, Choice] = {}
    for name, kind in costed.kinds.items():
        choice = _choice(kind, plan, order)
        if choice is None:
            return None
        choices[name] = choice
    boundary = {group: _laid(spec, order) for group, spec in plan.boundary.items()}
    if any(boundary.get(group) not in specs for group, specs in costed.borders.items()):
        return None
    return Decisions(choices=choices, boundary={group: boundary[group] for group in costed.borders})


@lru_cache(maxsize=256)
def _number(shape: Shape) -> dict[object, int]:
    """The numbers of modes whose leaves are in HBM as they are read, and that every coordinate of an axis runs."""
    axes = tuple(range(len(shape.modes[0].mode.out))) if shape.modes else ()
    return {
        _key(each.mode, axes): index
        for index, each in enumerate(shape.modes)
        if OWNER not in each.mode.choices and all(read.tier == HBM and read.gather is None for read in each.leaves)
    }


def _choice(kind: CostedKind, plan: Plan, order: tuple[int, ...]) -> Choice | None:
    number = _number(kind.shape)
    choice: dict[int, int] = {}
    for mode in plan.blocks[kind.kind.name].modes.values():
        index = number.get(_key(mode, order))
        if index is not None:
            choice.setdefault(kind.modes[index].value, index)
        elif mode.op.output.name not in kind.aliases:
            return None
    return choice


def _key(mode: Mode, order: tuple[int, ...]) -> object:
    return (mode.op.name, mode.op.kind, tuple(_laid(spec, order) for spec in mode.operands), _laid(mode.out, order))


def _laid(spec: Spec, order: tuple[int, ...]) -> Spec:
    """A spec with its axes in that order, and with every coordinate of an axis where it had its owner only."""
    whole = replicated(spec)
    return tuple(whole[axis] for axis in order)
