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
from rooflang.ir.cut import OWNER, replicated
from rooflang.ir.layout import Mode
from rooflang.place.grid import grid_plan
from rooflang.place.plan import Plan
from rooflang.search.problem import Problem
from rooflang.search.sizes import grid_shapes


def grid_seeds(problem: Problem, costed: CostedGraph, stages: int) -> Iterator[tuple[Plan, Decisions]]:
    """The grid's plans on the mesh of a costed graph, and as decisions, with every replica running what one owner would
    for all of them: that takes no longer and sends less (see `CostedGraph`). Left out are plans that something given
    rules out."""
    sizes = tuple(axis.size for axis in costed.cost.mesh.axes)
    for dp, cp, pp in grid_shapes(problem, [stages]):
        if tuple(size for size in (dp, cp) if size > 1) == sizes:
            graph = problem.graph.resized(batch=dp * cp) if problem.has_batch else problem.graph
            try:
                plan = grid_plan(graph, problem.cluster, dp=dp, cp=cp, pp=pp, blocks=problem.blocks)
            except PlacementError:
                continue
            found = _decisions(costed, plan)
            if found is not None:
                yield plan, found


def _decisions(costed: CostedGraph, plan: Plan) -> Decisions | None:
    """A plan by the numbers of a costed graph; None where it has a mode or a layout that the graph lacks."""
    choices: dict[str, Choice] = {}
    for name, kind in costed.kinds.items():
        choice = _choice(kind, plan)
        if choice is None:
            return None
        choices[name] = choice
    boundary = {group: replicated(spec) for group, spec in plan.boundary.items()}
    if any(boundary.get(group) not in specs for group, specs in costed.borders.items()):
        return None
    return Decisions(choices=choices, boundary={group: boundary[group] for group in costed.borders})


@lru_cache(maxsize=256)
def _number(shape: Shape) -> dict[object, int]:
    """The numbers of modes whose leaves are in HBM as they are read, and that every coordinate of an axis runs."""
    return {
        _key(each.mode): index
        for index, each in enumerate(shape.modes)
        if OWNER not in each.mode.choices and all(read.tier == HBM and read.gather is None for read in each.leaves)
    }


def _choice(kind: CostedKind, plan: Plan) -> Choice | None:
    number = _number(kind.shape)
    choice: dict[int, int] = {}
    for mode in plan.blocks[kind.kind.name].modes.values():
        index = number.get(_key(mode))
        if index is not None:
            choice.setdefault(kind.modes[index].value, index)
        elif mode.op.output.name not in kind.aliases:
            return None
    return choice


def _key(mode: Mode) -> object:
    return (mode.op.name, mode.op.kind, tuple(map(replicated, mode.operands)), replicated(mode.out))
