"""The paper's analysis: each ratio of peak decode throughput, as printed."""

from __future__ import annotations

import pytest

from rooflang.report.ratios import ComparedRatio, compare_ratios
from rooflang.search.progress import Progress


@pytest.fixture(scope="module")
def found() -> list[ComparedRatio]:
    return list(compare_ratios(Progress(sink=lambda message: None)))


def test_every_ratio_as_printed(found: list[ComparedRatio]) -> None:
    assert len(found) == 8
    for ratio in found:
        assert ratio.printed == ratio.published.times, ratio.published
        assert ratio.times == pytest.approx(ratio.tok_s_gpu / ratio.over_tok_s_gpu)
