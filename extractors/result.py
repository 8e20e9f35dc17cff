"""From decisions to an `Extraction`, with the seconds that the simulation will find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter

import numpy as np

from rooflang.extractors.plans import block_plan
from rooflang.extractors.pool import Pool
from rooflang.extractors.pricing import BATCH
from rooflang.extractors.task import Decisions, Extraction, Seconds, Task, combined
from rooflang.ir.cut import Spec
from rooflang.place.lower import lower
from rooflang.place.plan import BlockPlan
from rooflang.sim.costs import LiftedCosts

#: Seconds of the plan, summed in another order, may fall short of its bound by so much.
_ROUNDING = 1e-12


def extraction(
    task: Task,
    decisions: Decisions,
    *,
    bound_s: float,
    status: str,
    begin: float,
    rows: int = 0,
    columns: int = 0,
    binaries: int = 0,
) -> Extraction:
    """The record of decisions; `begin` is when (by `perf_counter`) the work on them began.

    The bound is on plans whose blocks take what passes between them from the port's layout alone. A plan that lowers to
    less, because a block finds what it wants among what the block before has at hand, lowers its bound too.
    """
    plans = block_plans(task, decisions)
    found = Extraction(
        mesh=task.mesh,
        stages=task.stages,
        objective=task.objective,
        decisions=decisions,
        block_plans=plans,
        boundary=decisions.boundary,
        local_s=0.0,
        exposed_s=0.0,
        bound_s=0.0,
        status=status,
        rows=rows,
        columns=columns,
        binaries=binaries,
    )
    stages = _lowered(task, found) if _shares(task, plans, decisions.boundary) else _summed(task, decisions)
    local, exposed = max(stages, key=lambda seconds: combined(task.objective, *seconds))
    value = combined(task.objective, local, exposed)
    return replace(
        found,
        local_s=local,
        exposed_s=exposed,
        bound_s=min(bound_s * (1.0 - _ROUNDING), value),
        seconds=perf_counter() - begin,
    )


def block_plans(task: Task, decisions: Decisions) -> dict[str, BlockPlan]:
    """The plan of every kind of block, at the task's batch size."""
    return {
        name: block_plan(kind, decisions.choices[name], decisions.boundary, task.at)
        for name, kind in task.costed.kinds.items()
    }


def _summed(task: Task, decisions: Decisions) -> list[Seconds]:
    """C and N of every stage."""
    pool, at = Pool(costed=task.costed), task.at
    stages = [pool.stage_s(task, load, decisions) for load in task.loads]
    return [(float(local[at]), float(exposed[at])) for local, exposed in stages]


def _shares(task: Task, plans: Mapping[str, BlockPlan], boundary: Mapping[int, Spec]) -> bool:
    """May a block find a port in a layout that another block made on the way to or from the port's own?"""
    costed = task.costed
    made: dict[int, set[Spec]] = {}
    used: dict[int, set[Spec]] = {}
    readers: dict[str, int] = {}
    for label in costed.blocks.sequence:
        for port in costed.blocks.by_name[costed.blocks.kind_of[label]].inputs:
            actual = costed.blocks.rename[label][port.name]
            readers[actual] = readers.get(actual, 0) + 1
    for name, kind in costed.kinds.items():
        plan = plans[name]
        for value in kind.values:
            ways = [path for path in (*plan.paths.values(), *plan.exits.values()) for step in path[:1]
                    if plan.source(step.tensor) == value.tensor.name]  # fmt: skip
            specs = {spec for way in ways for step in way for spec in (step.before, step.after)}
            if value.port >= 0:
                used.setdefault(value.port, set()).update(specs)
            elif value.exits and value.tensor.name in plan.modes:
                specs.add(plan.modes[value.tensor.name].out)
            for _, group in value.exits:
                made.setdefault(group, set()).update(specs)
    several = max(readers.values(), default=0) > 1
    found = {group: specs if several else specs & made.get(group, set()) for group, specs in used.items()}
    return any(specs - {boundary[group]} for group, specs in found.items())


def _lowered(task: Task, found: Extraction) -> list[Seconds]:
    """C and N of every stage by the operators that it really runs."""
    costed = task.costed
    sizes = dict(costed.cost.sizes)
    if BATCH in sizes:
        sizes[BATCH] = float(np.atleast_1d(sizes[BATCH])[task.at])
    known = LiftedCosts(replace(costed.cost, sizes=sizes))
    local, exposed = [0.0] * len(task.stages), [0.0] * len(task.stages)
    for op in lower(found.plan("extraction"), costed.blocks).ops:
        cost = known.of(op)
        local[op.stage] += float(cost.local_s)
        exposed[op.stage] += float(cost.exposed_s)
    return list(zip(local, exposed))
