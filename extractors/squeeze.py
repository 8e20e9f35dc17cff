"""Plans that fit where the fastest ones do not: memory gets a price.

Under weights λ of C and 1 − λ of N and a price p of a full memory, the least λ·C + (1 − λ)·N + p·(share of the memory
that leaves fill) of all plans, less p, is a lower bound on max(C, N) of every plan that fits (Lagrange). Each plan
found limits it from above: the weights to try next are those where the plans known allow the most (Kelley's method).
Then the kinds of block may take different ones of the plans found: what one kind leaves free another one fills.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from rooflang.extractors.dual import SMALL, dual
from rooflang.extractors.forms import Weights
from rooflang.extractors.memory import block_use, fullest, least_works_bytes, overflow, rests_bytes
from rooflang.extractors.plans import needed_modes
from rooflang.extractors.solver import Programme, Solver
from rooflang.extractors.task import Choice, Decisions, Load, Seconds, Task, combined
from rooflang.ir.cut import Spec

if TYPE_CHECKING:
    from rooflang.extractors.sweep import Sweep

#: The ends between which λ is chosen, and the highest price of a full memory, as a multiple of the fastest plan's
#: objective.
_ENDS, _DEAREST = (1e-3, 1.0 - 1e-3), 2e4

#: Weights that are tried at most, how near to the bound the next ones have to promise nothing, and how many of the best
#: combinations of the plans of kinds of block are kept.
_TRIES, _CLOSE, _COMBINATIONS = 16, 1e-3, 300


def squeeze(sweep: Sweep) -> None:
    """Offer the sweep plans that fit, and raise its bound.

    Raises `CapacityError`, which says what is missing, where what has to rest in memory alone does not fit.
    """
    task = sweep.task
    load = max(task.loads, key=lambda each: sum(each.counts.values()))
    _check_room(sweep, load)
    found = {str(plan): plan for plan in (sweep.leanest, *sweep.plans(_TRIES)) if plan is not None}
    lines = [_line(sweep, load, plan) for plan in found.values()]
    last = (0.0, 0.0)
    for _ in range(_TRIES):
        share, price_s, most = _next(lines, (0.5, 0.5) if task.objective == "sum" else _ENDS)
        least, plans = _priced(sweep, load, share, price_s)
        found |= {str(plan): plan for plan in plans}
        lines += [_line(sweep, load, plan) for plan in plans]
        if sweep.done or most - least <= _CLOSE * most or (share, price_s) == last:
            break
        last = share, price_s
    for plan in _mixed(sweep, load, found.values()):
        sweep.offer(plan)


#: C, N and what leaves fill of the memory, those left out that minima leave out.
_Line = tuple[float, float, float]


def _line(sweep: Sweep, load: Load, plan: Decisions) -> _Line:
    task = sweep.task
    rests = sum(count * _priced_bytes(task, name, plan) for name, count in load.counts.items() if count)
    return (*sweep.stage_s(load, plan), rests / task.capacity_bytes)


def _priced_bytes(task: Task, name: str, plan: Decisions) -> float:
    """What a block fills of the memory as far as minima know; infinite where nothing makes what is read."""
    kind = task.costed.kinds[name]
    try:
        used = needed_modes(kind, plan.choices[name])
    except KeyError:
        return math.inf
    return float(sum(rests_bytes(task, kind, kind.modes[mode]) for mode in used.values()))


def _next(lines: list[_Line], ends: tuple[float, float]) -> tuple[float, float, float]:
    """The share and price at which the bound is highest as far as the plans known tell, and how high: a linear
    programme of a column each, in which every plan is a row."""
    least, most = ends
    made = [line for line in lines if np.isfinite(sum(line))]
    if not made:  # nor can any that is known
        return (least + most) / 2.0, 0.0, np.inf
    local, exposed, fills = np.array(made).T
    unit_s = float(np.maximum(local, exposed).min()) or 1.0  # the solver's tolerances are absolute
    known = (least * local + (1.0 - least) * exposed) / unit_s
    entries = np.stack([(exposed - local) / unit_s, 1.0 - fills, np.ones(len(known))], axis=1)
    found = Solver().relax(
        Programme(
            cost=np.array([0.0, 0.0, -1.0]),
            upper=np.array([most - least, _DEAREST, np.inf]),
            integral=np.zeros(3, bool),
            low=np.full(len(known), -np.inf),
            high=known,
            start=np.arange(len(known) + 1) * 3,
            column=np.tile(np.arange(3), len(known)),
            value=entries.ravel(),
        )
    )
    if found.x is None:  # no plan can be made
        return (least + most) / 2.0, unit_s, np.inf
    share, price, height = found.x.tolist()
    return least + share, price * unit_s, height * unit_s


def _check_room(sweep: Sweep, load: Load) -> None:
    """Raise `CapacityError` where the leaves that have to rest in HBM do not fit beside what the largest kernel works
    on, as far as small tables tell, or else those of the sweep."""
    task, rests = sweep.task, priced(sweep.task, local=0.0, exposed=0.0, price=1.0)
    works = least_works_bytes(task, load) / task.capacity_bytes
    for limit in sorted({min(SMALL, sweep.limit), sweep.limit}):
        (leanest,) = dual(task.costed, task.at, task.keep).minima(task, load, ((task.at, rests),), limit)
        if np.isinf(leanest.value):
            raise task.impossible()
        sweep.offer(leanest.decisions)
        if leanest.value + works > 1.0 and sweep.leanest is not None:
            raise overflow(task, fullest(task, sweep.leanest))


def priced(task: Task, *, local: float, exposed: float, price: float, live: bool = False) -> Weights:
    """Weights of C and N, and of a full HBM; with `live` what kernels work on has that price, too."""
    byte = price / task.capacity_bytes
    waves = len(task.stages)
    return Weights(local=local, exposed=exposed, byte=byte, wave_byte=byte * waves, live_byte=byte if live else 0.0)


def _priced(sweep: Sweep, load: Load, share: float, price_s: float) -> tuple[float, list[Decisions]]:
    """The bound at weights, which the sweep gets, and the plans that have the least there. In one of them what kernels
    work on has the price, too: that makes no bound, but a plan that fits."""
    task = sweep.task
    found = dual(task.costed, task.at, task.keep)
    minima = []
    for live in (False, True):  # one by one: tables may be as large as memory allows
        weights = priced(task, local=share, exposed=1.0 - share, price=price_s, live=live)
        minima += found.minima(task, load, ((task.at, weights),), sweep.limit)
    least = minima[0].value - price_s
    if np.isfinite(least):
        sweep.bound_s = max(sweep.bound_s, least * (2.0 if task.objective == "sum" else 1.0))
    plans = [each.decisions for each in minima if np.isfinite(each.value)]
    for plan in plans:
        sweep.offer(plan)
    return least, plans


def _mixed(sweep: Sweep, load: Load, found: Iterable[Decisions]) -> list[Decisions]:
    """Under each boundary of the plans found the best combination of their plans for the kinds of block that fits, as
    far as leaves and the largest kernel tell."""
    by_boundary: dict[object, list[Decisions]] = {}
    for plan in found:
        by_boundary.setdefault(tuple(sorted(plan.boundary.items())), []).append(plan)
    mixes = []
    for plans in by_boundary.values():
        sweep.task.check()
        mixes.append(_mix(sweep, load, plans))
    return [mix for mix in mixes if mix is not None]


#: C, N, bytes at rest in HBM, the choices of the kinds.
_Part = tuple[float, float, float, dict[str, Choice]]


def _mix(sweep: Sweep, load: Load, plans: list[Decisions]) -> Decisions | None:
    task, boundary = sweep.task, plans[0].boundary
    free = task.capacity_bytes - max(_works(task, load, plan) for plan in plans)
    parts: list[_Part] = [(*_sends_s(task, load, boundary), 0.0, {})]
    for name, kind in task.costed.kinds.items():
        count = load.counts[name]
        options = {str(plan.choices[name]): plan.choices[name] for plan in plans}.values()
        priced = [
            (sweep.block_s(name, choice, boundary), block_use(task, kind, choice)[0], choice) for choice in options
        ]
        parts = _best_parts(
            [
                (c + count * own[0], n + count * own[1], used + count * size, {**chosen, name: choice})
                for c, n, used, chosen in parts
                for own, size, choice in priced
                if used + count * size <= free
            ]
        )
    if not parts:
        return None
    best = min(parts, key=lambda part: combined(task.objective, part[0], part[1]))
    return Decisions(choices=best[3], boundary=boundary)


def _works(task: Task, load: Load, plan: Decisions) -> float:
    """What the largest kernel of the kinds of block that a stage runs works on."""
    return max(block_use(task, task.costed.kinds[n], plan.choices[n])[1] for n, count in load.counts.items() if count)


def _sends_s(task: Task, load: Load, boundary: Mapping[int, Spec]) -> Seconds:
    return 0.0, sum(task.send_s(send, boundary[send.group]) for send in load.sends)


def _best_parts(parts: list[_Part]) -> list[_Part]:
    """Those that no other one equals or beats in C, N and memory; of too many those with the least C + N."""
    ordered = sorted(parts, key=lambda each: each[:3])
    exposed, used = (np.array([part[column] for part in ordered]) for column in (1, 2))
    out: list[_Part] = []
    kept: list[int] = []
    for number, part in enumerate(ordered):
        if not ((exposed[kept] <= part[1]) & (used[kept] <= part[2])).any():
            kept.append(number)
            out.append(part)
    return sorted(out, key=lambda each: each[0] + each[1])[:_COMBINATIONS]
