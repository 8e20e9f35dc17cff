"""The RoofLang paper's ratios of peak decode throughput, computed beside published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rooflang.models.tables import Ratio, published_ratios, published_rows
from rooflang.report.published import ASSUMPTIONS, GPUS, HARDWARE
from rooflang.search.api import simulate
from rooflang.search.progress import Progress

#: Digits after the point of a printed ratio.
DECIMALS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRatio:
    """A ratio as published, and the one of throughputs that were simulated, in tok/s/GPU."""

    published: Ratio
    tok_s_gpu: float
    over_tok_s_gpu: float

    @property
    def times(self) -> float:
        return self.tok_s_gpu / self.over_tok_s_gpu

    @property
    def printed(self) -> float:
        """The computed ratio with as many digits as the paper prints."""
        return round(self.times, DECIMALS)


def compare_ratios(progress: Progress) -> Iterator[ComparedRatio]:
    """All ratios that the paper prints. Each model runs at its peak batch, requests and experts over all GPUs."""
    batches = {(row.model, row.context): row.batch for row in published_rows()}
    peaks: dict[tuple[str, int], float] = {}

    def peak(model: str, context: int) -> float:
        key = (model, context)
        if key not in peaks:
            progress.say(f"peak throughput of {model}, context {context}")
            point = simulate(
                model,
                hardware=HARDWARE,
                gpus=GPUS,
                context=context,
                batch=batches[key],
                dp=GPUS,
                assumptions=ASSUMPTIONS,
            )
            peaks[key] = point.sim.tok_s_gpu
        return peaks[key]

    for ratio in published_ratios():
        yield ComparedRatio(
            published=ratio,
            tok_s_gpu=peak(ratio.model, ratio.context),
            over_tok_s_gpu=peak(ratio.over, ratio.context),
        )
