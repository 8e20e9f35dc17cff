"""Both ends of all curves of Figures 3 and 4, as the grid gives them under the `paper` profile: peak throughput and
highest interactivity, beside published points of the same batch size and inside the paper's axes.

`curve_ends.csv` has them with their layouts, out of a whole sweep (`make reproduce` writes it); that each end is what
its layout simulates to is tested here, too.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from rooflang.errors import CapacityError
from rooflang.report.reproduction.checks import CurveEnd, curve_ends
from rooflang.report.reproduction.frontiers import SERIES, Curve
from rooflang.report.reproduction.setting import Scope, Setting
from rooflang.report.reproduction.show_frontiers import END_TOLERANCE
from rooflang.search.api import optimize, simulate

_FILE = Path(__file__).with_name("curve_ends.csv")
_PAPER_GRID = next(each for each in SERIES if (each.search, each.assumptions) == ("grid", "paper"))

#: Digits in the file.
_ROUNDING = 1e-8


def _setting(row: dict[str, str]) -> Setting:
    names = {name: row[name] for name in ("model", "stage", "hardware")}
    return Setting(**names, context=int(row["context"]), gpus=int(row["gpus"]))


def _point(row: dict[str, str]) -> dict[str, Any]:
    rates = {name: float(row[name]) for name in ("tok_s_user", "tok_s_gpu")}
    return {**{name: int(row[name]) for name in ("batch", "dp", "cp", "pp")}, **rates, "on_frontier": True}


def _curves() -> Iterator[Curve]:
    with _FILE.open(encoding="utf-8", newline="") as lines:
        for setting, rows in groupby(csv.DictReader(lines), key=_setting):
            points = [_point(row) for row in rows]
            yield Curve(setting=setting, series=_PAPER_GRID, points=points, stopped_by="complete", refusal="")


CURVES = list(_curves())


@cache
def ends() -> list[CurveEnd]:
    return curve_ends(CURVES)


MISSING = [setting for setting in Scope().settings() if setting not in {curve.setting for curve in CURVES}]


def test_every_curve_that_has_points_has_its_ends() -> None:
    assert all(len(curve.points) == 2 for curve in CURVES)
    assert len(MISSING) + len(CURVES) == 128
    assert {(setting.hardware, setting.gpus) for setting in MISSING} == {("h200", 8), ("gh200", 8)}


@pytest.mark.slow
@pytest.mark.parametrize("setting", MISSING, ids=lambda setting: setting.stem)
def test_nothing_of_the_others_fits(setting: Setting) -> None:
    with pytest.raises(CapacityError):
        optimize(**setting.asked(), assumptions="paper", search="grid", batch=[1, 2, 4, 8])


def test_ends_are_within_3_percent_of_published_points() -> None:
    compared = [end for end in ends() if end.error is not None]
    assert len(compared) > 40
    far = {str(end.curve.setting): end.error for end in compared if abs(end.error or 0.0) > END_TOLERANCE}
    assert not far


def test_ends_are_inside_the_axes() -> None:
    """Within the top tick of the axis of the paper's figure, for all curves."""
    outside = {f"{end.curve.setting}, {end.end}": end.of_axis for end in ends() if (end.of_axis or 2.0) > 1.0}
    assert not outside


def _slow(curve: Curve) -> bool:
    return curve.setting.gpus > 8 or curve.setting.model != "deepseek-v4-flash"


@pytest.mark.parametrize(
    "curve",
    [pytest.param(each, id=each.setting.stem, marks=[pytest.mark.slow] if _slow(each) else []) for each in CURVES],
)
def test_an_end_is_what_its_layout_simulates_to(curve: Curve) -> None:
    for end in curve_ends([curve]):
        layout = {name: end.point[name] for name in ("batch", "dp", "cp", "pp")}
        sim = simulate(**curve.setting.asked(), **layout, assumptions="paper").sim
        assert sim.tok_s_gpu == pytest.approx(end.point["tok_s_gpu"], rel=_ROUNDING)
        assert sim.tok_s_user == pytest.approx(end.point["tok_s_user"], rel=_ROUNDING)
