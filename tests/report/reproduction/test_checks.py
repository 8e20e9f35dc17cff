"""Ends of curves beside published points and axes; the search beside the grid."""

from __future__ import annotations

import pytest

from rooflang.report.reproduction.checks import curve_ends, gains
from tests.report.reproduction.curves import curve, point


def test_ends_are_compared_with_the_point_of_their_batch_and_pipeline() -> None:
    peak, right = curve_ends([curve(point(64, 700.0, 700.0), point(65536, 88.857, 90989.27 * 1.01))])
    assert (peak.end, right.end) == ("peak", "right end")
    assert peak.error == pytest.approx(0.01)
    assert right.error == pytest.approx(700.0 / 683.718 - 1, rel=1e-4)
    assert peak.of_axis == pytest.approx(90989.27 * 1.01 / 100e3)
    assert right.of_axis == pytest.approx(7 / 9)


def test_an_end_without_a_point_and_a_panel_without_axes_are_known_as_such() -> None:
    peak, _ = curve_ends([curve(point(3, 700.0, 700.0), context=2**13)])
    assert peak.error is None
    assert peak.of_axis is None
    assert not curve_ends([curve()])


def test_gains_are_those_of_the_best_plans_of_a_batch() -> None:
    grid = curve(point(1, 10.0, 1.0), point(4, 9.0, 3.0), point(4, 8.0, 2.0, on_frontier=False), point(16, 5.0, 7.0))
    egraph = curve(point(1, 20.0, 1.5), point(4, 9.0, 2.997), search="egraph")
    found = gains([grid], [egraph], (1, 4, 16, 64))
    assert [gain.gain for gain in found.gains] == pytest.approx([0.5, -0.001])
    assert found.largest.batch == 1
    assert [gain.batch for gain in found.losses] == [4]
    assert [batch for _, batch in found.only_grid] == [16]
    assert found.mean == pytest.approx(0.2495)
    assert found.reach == (1.0,)
    assert not gains([grid], [], (1, 4)).gains


def test_rounding_is_no_loss() -> None:
    found = gains([curve(point(1, 1.0, 1.0))], [curve(point(1, 1.0, 1.0 - 1e-12), search="egraph")], (1,))
    assert not found.losses
