"""A frontier as a static figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rooflang.report.frontier import show_inputs
from rooflang.report.numbers import show_count
from rooflang.report.reproduction import style
from rooflang.report.reproduction.figures import short

#: Where the points span more than that factor, the scale is logarithmic.
_WIDE = 8.0


def draw_frontier(path: Path, inputs: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> None:
    """Draw throughput over interactivity, the batch beside each point; `points` as the JSON of a result has them. The
    suffix of `path` says how it is written. Raises `RooflangError` without matplotlib."""
    plt = style.pyplot()
    figure, panel = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    xs, ys = [p["tok_s_user"] for p in points], [p["tok_s_gpu"] for p in points]
    colour = style.COLOURS.get(inputs["hardware"], style.PARTS[0])
    marker = style.MARKERS.get(inputs["hardware"], "o")
    panel.step(xs, ys, where="post", color=colour, linewidth=0.8, alpha=0.6)
    panel.plot(xs, ys, linestyle="", color=colour, marker=marker, markersize=4.5)
    for axis, values, scale in ((panel.xaxis, xs, panel.set_xscale), (panel.yaxis, ys, panel.set_yscale)):
        if max(values) / min(values) >= _WIDE:
            scale("log")
        axis.set_major_formatter(lambda value, _: short(value))
        axis.set_minor_formatter(lambda value, _: "")
    for p, x, y in zip(points, xs, ys):
        panel.annotate(
            show_count(p["batch"]), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7, color="#555555"
        )
    panel.set_xlabel(style.SPEED)
    panel.set_ylabel(style.RATE)
    panel.set_title(" ".join(show_inputs(inputs).split()).replace("$", r"\$"), loc="left", fontsize=7.5, wrap=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
