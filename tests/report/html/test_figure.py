"""A frontier as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rooflang.report.html.figure import draw_frontier

pytest.importorskip("matplotlib")


def test_svg_has_the_batches_as_text_and_equal_bytes(
    tmp_path: Path, inputs: dict[str, Any], points: list[dict[str, Any]]
) -> None:
    for name in ("a.svg", "b.svg"):
        draw_frontier(tmp_path / name, inputs | {"model": "price $1$"}, points)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    for words in (">32<", ">64<", "tok/s/GPU", "tok/s/user"):
        assert words in text


def test_one_point_is_drawn_too(tmp_path: Path, inputs: dict[str, Any], points: list[dict[str, Any]]) -> None:
    draw_frontier(tmp_path / "one.png", inputs | {"model": "m"}, points[:1])
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_the_line_promises_nothing_that_no_point_has(
    tmp_path: Path, inputs: dict[str, Any], points: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two points, the throughput drawn is that of the faster one for its users, which is the lower."""
    from matplotlib.axes import Axes

    drawn: dict[str, Any] = {}
    monkeypatch.setattr(Axes, "step", lambda self, x, y, where, **look: drawn.update(x=x, y=y, where=where))
    draw_frontier(tmp_path / "f.png", inputs | {"model": "m"}, points[:2])
    assert drawn["x"][0] > drawn["x"][1] and drawn["y"][0] < drawn["y"][1] and drawn["where"] == "post"
