"""What a model needs, as text, as JSON and as a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.hw import Cluster
from rooflang.report.explained import draw_needs, needs_json, share_rows, show_flops, show_needs
from rooflang.report.needs import PARTS, Need, StepNeed


@pytest.fixture
def steps() -> list[StepNeed]:
    """Half of the bytes and a tenth of the FLOPs are those of attention, the rest of experts."""
    empty = {part: Need(flops={}) for part in PARTS}
    attention = Need(kv_bytes=4e9, flops={"fp8": 1e11})
    experts = Need(weight_bytes=3e9, activation_bytes=1e9, flops={"fp4": 9e11})
    parts = {**empty, "attention": attention, "FFN": experts}
    return [StepNeed(context=context, batch=batch, parts=parts) for context in (4096, 65536) for batch in (1, 16)]


def test_a_table_has_a_row_for_each_step_and_shares_for_each_part(steps: list[StepNeed]) -> None:
    text = show_needs(steps)
    assert text.count("125.0") == len(steps)  # 1e12 FLOPs over 8e9 bytes
    assert share_rows(steps[:1], "bytes") == [("4k", "1", "50.0%", "50.0%", "0.0%", "0.0%", "0.0%")]
    assert share_rows(steps[:1], "total_flops")[0][2:4] == ("10.0%", "90.0%")


def test_a_device_tells_what_bounds_it(steps: list[StepNeed]) -> None:
    device = Cluster.of("b300", 1).device
    text = show_needs(steps, device)
    assert text.count("memory") >= len(steps)  # 1 ms of memory, 0.1 ms of compute
    assert f"{1e6 * 8e9 / 7750e9:,.1f} µs" in text
    assert "fp4 1,742" in text


def test_json_has_totals_and_parts(steps: list[StepNeed]) -> None:
    told = needs_json(steps, {"model": "some"})
    assert told["inputs"] == {"model": "some"}
    assert told["steps"][0]["total"]["bytes"] == 8e9
    assert told["steps"][0]["parts"]["FFN"]["weight_bytes"] == 3e9


def test_a_figure_has_its_three_panels(steps: list[StepNeed], tmp_path: Path) -> None:
    draw_needs(steps, "Some model", tmp_path / "needs.svg", device=Cluster.of("b300", 1).device)
    text = (tmp_path / "needs.svg").read_text(encoding="utf-8")
    for words in ("Some model", "bytes per token", "arithmetic intensity", "share of the bytes, batch 16", "B300"):
        assert words in text


@pytest.mark.parametrize(("value", "text"), [(117.61e9, "117.6 G"), (5.4e12, "5.4 T"), (2e15, "2 P"), (12.0, "12")])
def test_flops_are_short(value: float, text: str) -> None:
    assert show_flops(value) == text
