"""The terminal says what the page says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rooflang.report.html.record import CloseUp
from rooflang.report.html.words import show_close_up
from rooflang.search.prepared import Prepared
from rooflang.units import show_bytes, show_seconds


def test_everything_of_a_pipeline_is_told(pipeline: Prepared, pipeline_close: CloseUp, inputs: dict[str, Any]) -> None:
    text = show_close_up(pipeline.point(), pipeline_close, inputs)
    for block in pipeline_close.blocks:
        assert f"block {block.name}" in text and show_seconds(block.seconds) in text
        assert all(row.name in text and show_bytes(row.bytes) in text for row in block.rows)
    for lane in pipeline_close.lanes:
        assert lane.name in text
    for change in pipeline_close.explanation.what_if:
        assert f"{change.change} 10% better" in text
    assert pipeline_close.held[0].name in text
    assert "bound: none was computed" in text
    assert "kv_append" in text and "mesh axes of a stage: x: 2 on nvlink" in text


def test_cuts_collectives_and_the_bound(tensor_parallel: Prepared, close: CloseUp, inputs: dict[str, Any]) -> None:
    point = tensor_parallel.point()
    bound = replace(point, bound_s=point.sim.step_s / 1.25, bound_scope="all of them")
    lines = show_close_up(bound, close, inputs).splitlines()
    (up,) = [line.split() for line in lines if line.split()[:2] == ["up", "matmul"]]
    assert up[:4] == ["up", "matmul", "ffn→4", "ffn"]
    (joined,) = [line.split() for line in lines if line.split()[:2] == ["down", "all-reduce"]]
    assert joined[:5] == ["down", "all-reduce", "along", "x", "replicated"]
    (told,) = [line for line in lines if line.startswith("bound: ")]
    assert "all of them; this one is 25.00% above" in told
