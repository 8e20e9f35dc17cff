"""Every published point on the four platforms of Table 5, throughput and interactivity, within 1%.

The numbers come out of the models under the `paper` profile; no number is fitted, one condition of the grid is
(decision 004), and what K3's programs do with sequences that are cut is inferred from points (decision 005). The
points and their sources lie in `rooflang/report/reproduction`.
"""

from __future__ import annotations

import pytest

from rooflang.errors import CapacityError
from rooflang.report.reproduction.points import (
    TOLERANCE,
    ComparedPoint,
    PublishedPoint,
    published_points,
    simulate_points,
)
from rooflang.search.api import simulate


@pytest.mark.parametrize("point", published_points(), ids=lambda point: point.name.replace(" ", "-"))
def test_point(point: PublishedPoint) -> None:
    asked = {**point.setting.asked(), "assumptions": "paper"}
    (ours,) = simulate_points(layouts=[point.layout()], **asked)["points"]
    assert abs(ComparedPoint(published=point, **ours).error) <= TOLERANCE


def test_out_of_memory() -> None:
    with pytest.raises(CapacityError, match="GB"):
        simulate(
            "deepseek-v4-flash",
            hardware="b300",
            gpus=8,
            stage="decode",
            context=65536,
            batch=16384,
            dp=8,
            assumptions="paper",
        )
