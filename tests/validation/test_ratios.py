"""The paper's analysis: each ratio of peak decode throughput, as printed."""

from __future__ import annotations

import pytest

from rooflang.models.tables import Ratio, published_ratios, published_rows
from rooflang.report.published import ASSUMPTIONS, GPUS, HARDWARE
from rooflang.report.reproduction.show_tables import RATIO_DECIMALS
from rooflang.search.api import simulate

BATCHES = {(row.model, row.context): row.batch for row in published_rows()}


def peak(model: str, context: int) -> float:
    """Tokens per second and GPU at the published peak batch, requests and experts over all GPUs."""
    point = simulate(
        model,
        hardware=HARDWARE,
        gpus=GPUS,
        context=context,
        batch=BATCHES[model, context],
        dp=GPUS,
        assumptions=ASSUMPTIONS,
    )
    return point.sim.tok_s_gpu


def test_there_are_ratios() -> None:
    assert len(published_ratios()) == 8


@pytest.mark.parametrize("ratio", published_ratios(), ids=lambda r: f"{r.model}-{r.over}-{r.context}")
def test_ratio_as_printed(ratio: Ratio) -> None:
    times = peak(ratio.model, ratio.context) / peak(ratio.over, ratio.context)
    assert round(times, RATIO_DECIMALS) == ratio.times
