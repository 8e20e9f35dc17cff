"""Figures: the same curves give the same files; every panel is there; what is missing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.errors import RooflangError
from rooflang.report.reproduction import style
from rooflang.report.reproduction.figures import draw_grid, draw_searches, published_axes, short
from rooflang.report.reproduction.frontiers import Curve
from rooflang.report.reproduction.interactive import write_page
from rooflang.report.reproduction.setting import CONTEXTS, MODELS, STAGES
from tests.report.reproduction.curves import curve, point


@pytest.fixture
def curves() -> list[Curve]:
    return [
        curve(point(64, 683.7, 683.7), point(4096, 500.0, 32000.0)),
        curve(point(8, 600.0, 600.0), gpus=8),
        curve(point(64, 400.0, 400.0), hardware="h200", context=2**20),
        curve(point(64, 5000.0, 900.0), search="egraph"),
    ]


def test_the_grid_is_drawn_as_svg_and_png_the_same_each_time(tmp_path: Path, curves: list[Curve]) -> None:
    def published(model: str, stage: str, context: int) -> list[tuple[float, float, str]]:
        return [(683.7, 683.7, "gb300")]

    first = draw_grid(curves[:3], "decode", published, tmp_path / "one")
    second = draw_grid(curves[:3], "decode", published, tmp_path / "two")
    assert [path.name for path in first] == ["one.svg", "one.png"]
    for one, two in zip(first, second):
        assert one.read_bytes() == two.read_bytes()
    text = first[0].read_text(encoding="utf-8")
    for words in ("Figure 4", "DeepSeek V4 Flash, 64K", "DeepSeek V4 Flash, 1M", "tok/s/user", "published point"):
        assert words in text


def test_the_search_is_drawn_beside_the_grid_and_empty_panels_say_so(tmp_path: Path, curves: list[Curve]) -> None:
    none = curve(model="kimi-k3", gpus=8)
    path, _ = draw_searches([*curves, none], "decode", tmp_path / "both")
    text = path.read_text(encoding="utf-8")
    assert "does not fit" in text
    assert "64K, 8 GPUs" in text


def test_a_page_has_all_curves_and_needs_nothing_else(tmp_path: Path, curves: list[Curve]) -> None:
    page = tmp_path / "page.html"
    assert write_page(curves, page)
    text = page.read_text(encoding="utf-8")
    assert text.count("<h2>") == 1
    assert "plotly.js v" in text
    assert "https://cdn" not in text.split("plotly.js v")[0]
    assert "bottleneck: memory" in text
    assert not write_page([curve()], tmp_path / "none.html")


def test_every_panel_of_the_paper_has_its_top_ticks() -> None:
    for model in MODELS:
        for stage in STAGES:
            assert all(published_axes(model, stage, context) for context in CONTEXTS)
    assert published_axes("kimi-k3", "decode", 2**18) is None


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (450, "450"), (15e3, "15K"), (2.5e6, "2.5M")])
def test_ticks_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_a_missing_library_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(style.importlib, "import_module", missing)
    with pytest.raises(RooflangError, match="matplotlib") as caught:
        style.check_libraries()
    assert "rooflang[report]" in caught.value.hint
