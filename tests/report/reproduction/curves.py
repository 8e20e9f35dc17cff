"""Curves made by hand."""

from __future__ import annotations

from typing import Any

from rooflang.report.reproduction.frontiers import Curve, Series
from rooflang.report.reproduction.setting import Setting


def point(batch: int, user: float, gpu: float, **more: Any) -> dict[str, Any]:
    """A point as a job keeps it."""
    return {
        "batch": batch,
        "pp": 1,
        "pp_partition": [43],
        "mesh": [64],
        "tok_s_user": user,
        "tok_s_gpu": gpu,
        "step_s": 1.0 / user,
        "gap": None,
        "peak_bytes": 10**9,
        "capacity_bytes": 288 * 10**9,
        "bottleneck": "memory",
        "plan": "experts: expert→64; pipeline 1",
        "on_frontier": True,
        **more,
    }


def curve(*points: dict[str, Any], search: str = "grid", assumptions: str = "paper", **setting: Any) -> Curve:
    """A curve of V4 Flash, decode at 64K on 64 GB300, unless the setting is another one."""
    asked = {
        "model": "deepseek-v4-flash",
        "stage": "decode",
        "context": 2**16,
        "hardware": "gb300",
        "gpus": 64,
        **setting,
    }
    series = Series(search=search, assumptions=assumptions)  # type: ignore[arg-type]
    return Curve(setting=Setting(**asked), series=series, points=points, stopped_by="complete", refusal="")
