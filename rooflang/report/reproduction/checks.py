"""Checks of Figures 3 and 4: ends of curves beside published points and axes; the automatic search beside the grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rooflang.report.reproduction.figures import published_axes
from rooflang.report.reproduction.frontiers import Curve
from rooflang.report.reproduction.points import PublishedPoint, published_points

#: Rounding of a step time: what is less is no loss.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveEnd:
    """The peak or the right end of a curve of the grid; `published` is the point of the same batch size and pipeline,
    where there is one."""

    curve: Curve
    end: str
    point: Mapping[str, Any]
    published: PublishedPoint | None

    @property
    def error(self) -> float | None:
        """Relative error of what the end is about: throughput at the peak, interactivity at the right."""
        published = None if self.published is None else getattr(self.published, self._about)
        return None if published is None else float(self.point[self._about]) / float(published) - 1.0

    @property
    def of_axis(self) -> float | None:
        """Its part of the axis of the paper's figure; None where the tick is not known."""
        setting = self.curve.setting
        axes = published_axes(setting.model, setting.stage, setting.context)
        return None if axes is None else float(self.point[self._about]) / float(getattr(axes, self._about))

    @property
    def _about(self) -> str:
        return "tok_s_gpu" if self.end == "peak" else "tok_s_user"


def curve_ends(curves: Sequence[Curve]) -> list[CurveEnd]:
    """Both ends of every curve that has points."""
    out = []
    for curve in curves:
        if curve.points:
            frontier = curve.frontier
            for end, point in (("peak", frontier[-1]), ("right end", frontier[0])):
                out.append(CurveEnd(curve=curve, end=end, point=point, published=_published(curve, point)))
    return out


def _published(curve: Curve, point: Mapping[str, Any]) -> PublishedPoint | None:
    for published in published_points():
        if (published.setting, published.batch, published.pp) == (curve.setting, point["batch"], point["pp"]):
            return published
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The automatic search beside the grid at one batch size of a setting: by how much more throughput it has."""

    grid: Curve
    batch: int
    gain: float

    @property
    def loses(self) -> bool:
        return self.gain < -_ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """The gains at all batch sizes of all settings that both ways of search have points at. `only_grid` are batch
    sizes, by setting, that the search was asked for and has no point at, where the grid has one. `reach` is by
    how much the highest interactivity of the search is above that of the grid, for each setting."""

    gains: tuple[Gain, ...]
    only_grid: tuple[tuple[Curve, int], ...]
    reach: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(gain.gain for gain in self.gains)

    @property
    def largest(self) -> Gain:
        return max(self.gains, key=lambda gain: gain.gain)

    @property
    def smallest(self) -> Gain:
        return min(self.gains, key=lambda gain: gain.gain)

    @property
    def losses(self) -> tuple[Gain, ...]:
        return tuple(gain for gain in self.gains if gain.loses)


def gains(grid: Sequence[Curve], egraph: Sequence[Curve], ladder: Sequence[int]) -> Gains:
    """Compare curves of both ways to search in the settings that both have."""
    known = {curve.setting: curve for curve in egraph}
    found: list[Gain] = []
    missing: list[tuple[Curve, int]] = []
    reach: list[float] = []
    for curve in grid:
        if curve.setting not in known:
            continue
        if curve.points and known[curve.setting].points:
            reach.append(_most_user(known[curve.setting]) / _most_user(curve) - 1.0)
        for batch, ours in _common(curve, known[curve.setting], ladder):
            if ours is None:
                missing.append((known[curve.setting], batch))
            else:
                found.append(Gain(grid=curve, batch=batch, gain=ours))
    return Gains(gains=tuple(found), only_grid=tuple(missing), reach=tuple(reach))


def _most_user(curve: Curve) -> float:
    return max(float(point["tok_s_user"]) for point in curve.points)


def _common(grid: Curve, egraph: Curve, ladder: Sequence[int]) -> Iterator[tuple[int, float | None]]:
    for batch in ladder:
        theirs, ours = grid.best(batch), egraph.best(batch)
        if theirs is not None:
            yield batch, None if ours is None else float(ours["tok_s_gpu"]) / float(theirs["tok_s_gpu"]) - 1.0
