"""`ilp`: the best plan there is, with a proof of how good it is.

First the dual: it bounds the objective from below and finds plans near it, in a fraction of a second. What gap it
leaves, and plans that have to be squeezed into memory, are left to an integer programme over the flow network, which
HiGHS solves starting from the plan found so far.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np

from rooflang.errors import CapacityError, LimitReached, PlacementError, RooflangError
from rooflang.extractors.branch import branched
from rooflang.extractors.capacity import capacity_rows
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.memory import fullest, least_bytes, overflow
from rooflang.extractors.network import Network, network
from rooflang.extractors.numbers import numbers
from rooflang.extractors.plans import needed_modes
from rooflang.extractors.pool import Pool
from rooflang.extractors.programme import Assembled, assemble
from rooflang.extractors.result import extraction
from rooflang.extractors.solver import Solver
from rooflang.extractors.sweep import Sweep
from rooflang.extractors.task import Decisions, Extraction, Task

#: Entries that a table of the dual may have; and where that leaves a gap (8 bytes each).
LIMIT, LARGE_LIMIT = 16_000_000, 64_000_000

#: The same where a quick look is taken.
QUICK_LIMIT = 100_000

#: Branches of the dual that are split, and the part of what makes it worth while at which the gap is small enough.
BRANCHES, ENOUGH = 120, 0.5

#: Nodes of the integer programme's search tree.
NODES = 200

#: The modes of how many of the best plans are first combined anew, and the part of the limits that this may take.
_PARENTS, _PART = 4, 0.3

#: Columns of a programme with rows of memory beyond which it is not run if there is a plan: its linear relaxation alone
#: takes minutes.
WIDE = 60_000

#: How many of the best plans have their leaves laid anew, and the share of memories that is left free then, since the
#: solver's tolerances are as large.
_LAID, _MARGIN = 2, 3e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """What the integer programme said, the plan that it found, and how large it was."""

    status: str
    found: Decisions | None = None
    bound_s: float = 0.0
    rows: int = 0
    columns: int = 0
    binaries: int = 0


def extract(
    task: Task,
    *,
    nodes: int = NODES,
    gap: float = 1e-3,
    worth: float = 0.0,
    cutoff_s: float = float("inf"),
    draft: bool = False,
    pool: Pool | None = None,
) -> Extraction:
    """The best plan of a task, to a relative gap, or what was found when a limit was reached: one that the task is
    watched for, or of the `nodes` of the integer programme's search tree, which do not depend on the machine. Plans are
    taken from `pool` and added to it; all of them have to keep to what the task fixes. The programme is run only where
    a gap of more than `worth` is left, for it takes ten times as long as all else; after branches only if `worth` is
    not above `gap`, and for a `draft`, which is looked at further, only where memory is short, and not where leaves may
    rest in other ways and a plan is known that fits.

    With `cutoff_s` it stops, with status `cut off`, once no plan can be faster than that. Raises `CapacityError` where
    nothing fits (by how much, and which tensors), `PlacementError` where the task's extents do not divide over the mesh
    or what it fixes excludes every plan, `LimitReached` where a limit came before there was a plan.
    """
    begin = perf_counter()
    sweep = Sweep.of(task, limit=QUICK_LIMIT, gap=gap, cutoff_s=cutoff_s, pool=pool)
    enough = draft
    with suppress(LimitReached):  # too many layouts: the programme has to do it alone; or a limit: what there is stands
        enough = _look(sweep, gap=gap, worth=worth, draft=draft)
    known = sweep.best or next(iter(sweep.plans(1)), None)
    if known is not None and sweep.bound_s >= cutoff_s:
        return extraction(task, known, bound_s=sweep.bound_s, status="cut off", begin=begin)
    if sweep.best is not None and sweep.done:
        return extraction(task, sweep.best, bound_s=sweep.bound_s, status="optimal", begin=begin)
    fine = sweep.value_s <= sweep.bound_s * (1.0 + worth) or (enough and not sweep.tight and sweep.bound_s > 0.0)
    if sweep.best is not None and fine:
        return extraction(task, sweep.best, bound_s=sweep.bound_s, status="heuristic", begin=begin)
    solved = _solve(task, sweep, nodes=nodes, gap=gap, draft=draft)
    if sweep.best is None:
        raise _nothing(task, sweep, solved)
    return extraction(
        task,
        sweep.best,
        bound_s=max(sweep.bound_s, solved.bound_s),
        status=solved.status,
        rows=solved.rows,
        columns=solved.columns,
        binaries=solved.binaries,
        begin=begin,
    )


def proved(task: Task, *, nodes: int, gap: float, cutoff_s: float, pool: Pool) -> tuple[float, Decisions | None, int]:
    """A lower bound on the objective of every plan of a task that fits, infinite where there is none, the best plan
    found, and how many columns the programme had, 0 where there was none, as with 0 `nodes`: as `extract`, without the
    record of a plan."""
    sweep = Sweep.of(task, limit=QUICK_LIMIT, gap=gap, cutoff_s=cutoff_s, pool=pool)
    try:
        with suppress(LimitReached):
            _look(sweep, gap=gap, worth=gap, draft=False)
        if sweep.done or not nodes:
            return sweep.bound_s, sweep.best, 0
        solved = _solve(task, sweep, nodes=nodes, gap=gap)
    except (CapacityError, PlacementError):
        return float("inf"), None, 0
    bound_s = float("inf") if solved.status == "infeasible" else max(sweep.bound_s, solved.bound_s)
    return bound_s, sweep.best, solved.columns


def _look(sweep: Sweep, *, gap: float, worth: float, draft: bool) -> bool:
    """All that is done before the integer programme, and whether what it finds is good enough as it is. Raises
    `LimitReached` where there are too many layouts, or at a limit."""
    task = sweep.task
    short = task.costed.spares  # other ways to rest are looked at where HBM is short
    full = not short and bool(least_bytes(task)[task.at] > task.all_room_bytes)  # then there is next to nothing to find
    if not full and (np.isfinite(sweep.cutoff_s) or sweep.best is not None):
        sweep.probe()
    sweep.limit = LIMIT
    if short:
        sweep.probe()
    if short or full:
        sweep.squeeze()
    if short:
        sweep.combine()
    else:
        sweep.run()
        sweep.refine(LARGE_LIMIT)
        open_s = sweep.value_s - sweep.bound_s * (1.0 + worth)
        if open_s > 0.0 and not (draft or sweep.tight):
            with suppress(LimitReached):  # too many layouts
                branched(sweep, BRANCHES, max(gap, worth * ENOUGH))
            draft = worth > max(gap, 0.0)  # the programme would take long for little more
    if sweep.best is None and sweep.bound_s < sweep.cutoff_s:
        sweep.squeeze()
    return draft


def _solve(task: Task, sweep: Sweep, *, nodes: int, gap: float, draft: bool = False) -> _Solved:
    """The integer programme, as far as limits allow, its plan offered to the sweep."""
    try:
        return _programme(task, sweep, nodes=nodes, gap=gap, draft=draft)
    except LimitReached:
        return _Solved(status="limit")


def _programme(task: Task, sweep: Sweep, *, nodes: int, gap: float, draft: bool) -> _Solved:
    """The integer programme. Memory gets rows once it was found short. First the modes of the best plans known are
    combined anew, or where memory is short their leaves laid anew. Raises `LimitReached` between runs."""
    task.check()
    part, whole, net = (_PART, round(_PART * nodes)), (1.0, nodes), network(task.costed)
    run = partial(_run, net, task, sweep, gap=gap)
    if sweep.tight:
        for plan in {id(plan): plan for plan in (sweep.best, *sweep.plans(_LAID)) if plan is not None}.values():
            run(only=_laid_anew(task, plan), limits=part, margin=_MARGIN)
        if draft and task.costed.spares and sweep.best is not None:
            return _Solved(status="heuristic")
    elif sweep.best is not None:
        parents = [plan.choices for plan in sweep.plans(_PARENTS)]
        only = {name: {mode for plan in parents for mode in plan[name].values()} for name in task.costed.kinds}
        run(only=only, limits=part)
    while True:
        tight = sweep.tight
        if tight and net.columns > WIDE and sweep.best is not None:
            return _Solved(status="heuristic")
        solved = run(limits=whole)
        if tight and solved.found is not None and not sweep.offer(solved.found):  # by less than the solver notices
            run(only=_laid_anew(task, solved.found), limits=whole, margin=_MARGIN)
        if tight or not sweep.tight:
            return solved


def _laid_anew(task: Task, plan: Decisions) -> dict[str, set[int]]:
    """The modes of a plan, and those that differ from them only in where leaves rest."""
    out = {}
    for name, kind in task.costed.kinds.items():
        mine = {id(kind.modes[number].mode) for number in plan.choices[name].values()}
        out[name] = {number for number, mode in enumerate(kind.modes) if id(mode.mode) in mine}
    return out


def _run(
    net: Network,
    task: Task,
    sweep: Sweep,
    *,
    limits: tuple[float, int],
    gap: float,
    only: Mapping[str, Collection[int]] | None = None,
    margin: float = 0.0,
) -> _Solved:
    """One run of the solver, for a share of the time that is left and a number of nodes, unless the plan is good enough
    already; what it finds is offered to the sweep. `margin` is the share of memories that it leaves free. Raises
    `LimitReached`."""
    if sweep.done:
        return _Solved(status="optimal")
    task.check()
    tight = sweep.tight
    found = numbers(net, task, frugal=tight, only=only)
    about_s = sweep.value_s if np.isfinite(sweep.value_s) else float(found.local_s.sum(axis=1).max())
    rows = capacity_rows(net, task, found.usable, margin) if tight else ()
    model = assemble(net, found, task.objective, about_s=about_s, rows=rows)
    start = {} if sweep.best is None else _start(net, model, sweep.best)
    task.check()
    share, nodes = limits
    left_s = share * task.watch.remaining_s
    outcome = Solver().solve(model.programme, time_limit_s=left_s, nodes=nodes, gap=gap, start=start)
    plan = None if outcome.x is None else _decisions(net, model, outcome.x)
    if plan is not None:
        sweep.offer(plan)
    return _Solved(
        status=outcome.status,
        found=plan,
        bound_s=model.bound_s(outcome.bound),
        rows=len(model.programme.low),
        columns=len(model.programme.cost),
        binaries=int(model.programme.integral.sum()),
    )


def _start(net: Network, model: Assembled, decisions: Decisions) -> dict[int, float]:
    """Decisions as values of the programme's columns; the solver completes them by the flows."""
    chosen = np.zeros(net.columns)
    for start, kind in zip(net.mode_start, net.kinds):
        used = needed_modes(kind, decisions.choices[kind.kind.name])
        chosen[[start + number for number in used.values()]] = 1.0
    for group, spec in decisions.boundary.items():
        chosen[net.border[(group, spec)]] = 1.0
    columns = np.flatnonzero(model.place[: net.integral] >= 0)
    return dict(zip(model.place[columns].tolist(), chosen[columns].tolist()))


def _decisions(net: Network, model: Assembled, x: FloatArray) -> Decisions:
    chosen = np.zeros(net.columns, bool)
    used = model.place >= 0
    chosen[used] = x[: used.sum()] > 0.5
    choices = {}
    for start, kind in zip(net.mode_start, net.kinds):
        picked = np.flatnonzero(chosen[start : start + len(kind.modes)]).tolist()
        choices[kind.kind.name] = {kind.modes[number].value: number for number in picked}
    boundary = {group: spec for (group, spec), column in net.border.items() if chosen[column]}
    return Decisions(choices=choices, boundary=boundary)


def _nothing(task: Task, sweep: Sweep, solved: _Solved) -> RooflangError:
    """Why there is no plan. Raises `LimitReached` where that is not known yet."""
    task.check()
    if sweep.leanest is not None:
        return overflow(task, fullest(task, sweep.leanest))
    if solved.status == "infeasible":
        return task.impossible()
    return LimitReached("a limit was reached before a plan was found", where="extraction", hint="allow more time")
