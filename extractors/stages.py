"""Pipelines: which layers each stage runs, together with the plan that all stages use.

Under a plan the best contiguous partition follows exactly, by dynamic programming; for a partition the best plan is
an extraction. The two take turns. The bound is over all partitions and plans: under any weights a stage takes at
least what the minima of its blocks add up to. What is then open, branches over all partitions close, or, where leaves
may leave HBM, stages that are proved one by one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from time import perf_counter

import numpy as np

from rooflang.errors import CapacityError, LimitReached
from rooflang.extractors import ilp
from rooflang.extractors.branch import Branching
from rooflang.extractors.chain import Chain
from rooflang.extractors.dual import dual
from rooflang.extractors.partitions import Partitions
from rooflang.extractors.pool import Pool
from rooflang.extractors.result import extraction
from rooflang.extractors.sweep import promising_share
from rooflang.extractors.task import Extraction, Stages, Task
from rooflang.extractors.windows import Windows
from rooflang.place.grid import partition

#: Turns of extraction and partition.
_TURNS = 4

#: How many of the plans found last are asked for their best partition.
_KNOWN = 2

#: A partition has to gain more than this part of the objective to be worth another extraction.
_WORTH = 1e-4


def extract(
    task: Task,
    *,
    gap: float = 1e-3,
    worth: float = 0.0,
    cutoff_s: float = float("inf"),
    repartition: bool = True,
    pool: Pool | None = None,
) -> Extraction:
    """As `ilp.extract`, but the task's stages are only where the search for the best partition begins, unless
    `repartition` is false.

    The bound is over all contiguous partitions into as many stages, or over plans for the given ones.
    """
    plans = pool or Pool(costed=task.costed)
    if len(task.stages) == 1 or not repartition:
        return ilp.extract(task, gap=gap, worth=worth, cutoff_s=cutoff_s, pool=plans)
    begin = perf_counter()
    chain, found = Chain(task=task), dual(task.costed, task.at, task.keep)
    bound_s, promising = chain.bound(found, ilp.QUICK_LIMIT)
    for _, known in plans.ranked(task)[:1] if bound_s >= cutoff_s else []:
        return extraction(task, known, bound_s=bound_s, status="cut off", begin=begin)
    short = task.costed.spares  # other ways to rest are looked at where HBM is short
    best = _best(chain, plans, promising, bound_s, gap=gap, worth=worth, cutoff_s=cutoff_s)
    more = not task.watch.expired and bound_s < cutoff_s  # what is cut off was so with one partition only
    if more and not short and best.value_s > bound_s * (1.0 + gap):
        bound_s = max(bound_s, chain.bound(found, ilp.LIMIT)[0])
    if bound_s >= cutoff_s or best.value_s <= bound_s * (1.0 + worth):
        return replace(best, bound_s=min(bound_s, best.value_s))
    goal = Partitions(chain, plans, best=best.decisions, stages=best.stages, value_s=best.value_s, bound_s=bound_s,
                      gap=max(gap, worth * ilp.ENOUGH), cutoff_s=cutoff_s)  # fmt: skip
    with suppress(LimitReached):  # too many layouts, or a limit
        if short:
            # Quick floors will do: it looks at stages closely itself.
            windows = Windows(goal=goal, floors=chain.floors(found, ilp.QUICK_LIMIT))
            windows.run()
            windows.fill(gap=gap, worth=worth)
        else:
            on = replace(task, stages=best.stages)
            Branching(task=on, goal=goal, share=promising_share(on, plans)).run(ilp.BRANCHES)
    return _reached(goal, best, gap=gap, begin=begin)


def _reached(goal: Partitions, best: Extraction, *, gap: float, begin: float) -> Extraction:
    """The record of a goal that began with the `best` plan."""
    bound_s = goal.bound_s
    if goal.best is not best.decisions:
        task = replace(goal.chain.task, stages=goal.stages)
        best = extraction(task, goal.best, bound_s=bound_s, status="heuristic", begin=begin)
    cut_off, optimal = bound_s >= goal.cutoff_s, best.value_s <= bound_s * (1.0 + gap)
    status = "cut off" if cut_off else "optimal" if optimal else "heuristic"
    return replace(best, bound_s=min(bound_s, best.value_s), status=status)


def _best(
    chain: Chain,
    pool: Pool,
    promising: tuple[int, ...],
    bound_s: float,
    *,
    gap: float,
    worth: float,
    cutoff_s: float,
) -> Extraction:
    """The best plan that turns of extraction and partition find, from the task's stages, a promising partition, and
    the best ones for plans that are known. Raises what the first one raised where there is none, or `LimitReached`."""
    task = chain.task
    known = [counts for value_s, counts in map(chain.best, pool.plans[-_KNOWN:]) if np.isfinite(value_s)]
    starts = [task.stages, *(partition(task.costed.blocks, counts) for counts in dict.fromkeys([promising, *known]))]
    waiting, seen = starts, set[Stages]()
    best: Extraction | None = None
    failed: CapacityError | LimitReached | None = None
    while waiting and len(seen) < _TURNS and not task.watch.expired:
        stages = waiting.pop(0)
        if stages in seen or (best is not None and best.value_s <= bound_s * (1.0 + gap)):
            continue
        seen.add(stages)
        try:
            found = ilp.extract(
                replace(task, stages=stages),
                gap=gap,
                worth=worth,
                cutoff_s=cutoff_s,
                draft=True,
                pool=pool,
            )
        except (CapacityError, LimitReached) as error:
            failed = failed or error  # another partition may fit, or may have been extracted already
            continue
        if best is None or found.value_s < best.value_s:
            best = found
        value_s, counts = chain.best(found.decisions)
        if value_s < best.value_s * (1.0 - _WORTH):
            waiting.insert(0, partition(task.costed.blocks, counts))
    if best is None:
        task.check()
        assert failed is not None
        raise failed
    return best
