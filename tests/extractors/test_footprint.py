"""What plans hold at all batch sizes at once, against one batch size and stage at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rooflang.extractors.bounds import quick_bounds_s
from rooflang.extractors.footprint import Footprint
from rooflang.extractors.ilp import extract
from rooflang.extractors.memory import fullest
from rooflang.extractors.survey import Survey
from rooflang.extractors.task import Decisions, Task
from rooflang.place.grid import partition

from .test_memory import squeezed
from .test_survey import task_of


def agrees(task: Task, plans: Sequence[Decisions]) -> None:
    for plan in plans:
        shares = Footprint.of(task, plan).share(task.stages)
        assert shares.shape == (len(task.costed.batches),)
        for at, share in enumerate(shares):
            assert share == pytest.approx(fullest(replace(task, at=at), plan).share, rel=1e-12)


@pytest.mark.parametrize("stages", [1, 2])
def test_models_hold_what_one_batch_size_after_the_other_says(stages: int) -> None:
    task = task_of(stages, "max")
    plans = Survey.of(task, quick_bounds_s(task)).pool.plans
    assert len(plans) > 1
    agrees(task, plans)
    if stages == 2:
        agrees(replace(task, stages=partition(task.costed.blocks, (2, 4))), plans)


@pytest.mark.parametrize("graph", ["cached", "fan", "recalled"])
def test_every_memory_counts(graph: str) -> None:
    task = squeezed(graph, (2,), ("hbm", "dram"), 0.3, "max")
    agrees(task, [extract(task, gap=1e-2).decisions])
