"""`greedy`: a good plan fast, without a proof.

A few weights of C against N, each minimised with small tables: where a kernel's choice depends on too many others at
once, it is made on a part of them. What the weights' plans have for different kinds of block is then combined.
"""

from __future__ import annotations

from time import perf_counter

from rooflang.errors import LimitReached
from rooflang.extractors.memory import fullest, overflow
from rooflang.extractors.result import extraction
from rooflang.extractors.sweep import Sweep
from rooflang.extractors.task import Extraction, Task

#: Shares of C in the weights.
SHARES = (0.5, 0.8, 0.95, 0.999)

#: Entries that a table may have.
LIMIT = 200_000


def extract(task: Task) -> Extraction:
    """The best plan of the sweep; its bound is that of the same small tables.

    Raises `CapacityError` where nothing fits, `PlacementError` where extents do not divide, and `LimitReached` where
    the small tables led to no plan at all.
    """
    begin = perf_counter()
    sweep = Sweep.of(task, limit=LIMIT, gap=0.0)
    sweep.scan((0.5,) if task.objective == "sum" else SHARES)
    sweep.combine()
    if sweep.best is None:
        sweep.squeeze()
    if sweep.best is None and sweep.leanest is not None:
        raise overflow(task, fullest(task, sweep.leanest))
    if sweep.best is None:
        raise LimitReached("small tables led to no plan", where="greedy extraction", hint="use the extractor ilp")
    return extraction(task, sweep.best, bound_s=sweep.bound_s, status="heuristic", begin=begin)
