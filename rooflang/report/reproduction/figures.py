"""Figures 3 and 4 as files: one panel for each model and context, one colour for each platform."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from rooflang.report.numbers import show_count
from rooflang.report.reproduction import style
from rooflang.report.reproduction.frontiers import Curve, Series
from rooflang.report.reproduction.setting import HARDWARE, TITLES

#: Figure numbers of the paper.
NUMBERS = {"prefill": 3, "decode": 4}

_DRAWN: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 150, "metadata": {"Software": None}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The top ticks of a panel of the paper's figures."""

    tok_s_gpu: float
    tok_s_user: float


@lru_cache(maxsize=1)
def _published() -> dict[str, Any]:
    path = Path(__file__).with_name("published_figures.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def published_axes(model: str, stage: str, context: int) -> Axes | None:
    """The top ticks of the panel, or None for one that the paper does not have."""
    axes = _published()[stage].get(model)
    contexts = {2**16: 0, 2**20: 1}
    if axes is None or context not in contexts:
        return None
    return Axes(tok_s_gpu=axes["gpu"][contexts[context]], tok_s_user=axes["user"])


Published = Callable[[str, str, int], Sequence[tuple[float, float, str]]]


def draw_grid(curves: Sequence[Curve], stage: str, published: Published, stem: Path) -> list[Path]:
    """The paper's figure: the grid's curves over linear axes, which end at the paper's top ticks; published points as
    rings. `published` gives (tok/s/user, tok/s/GPU, hardware) of a model, stage and context."""
    mine = [curve for curve in curves if curve.setting.stage == stage]
    profile = mine[0].series.assumptions
    plt = style.pyplot()
    models, contexts = _models(mine), _contexts(mine)
    figure, panels = _panels(plt, len(contexts), len(models), height=2.5)
    for (row, context), (column, model) in product(enumerate(contexts), enumerate(models)):
        panel = panels[row][column]
        for curve in _of(mine, model, context):
            _line(panel, curve, dashed=curve.setting.gpus != max(c.setting.gpus for c in mine))
        if profile == "paper":
            for user, rate, hardware in published(model, stage, context):
                panel.plot(
                    user,
                    rate,
                    "o",
                    markersize=8,
                    fillstyle="none",
                    markeredgecolor=style.PUBLISHED,
                    markeredgewidth=0.7,
                    zorder=5,
                    label=f"_{hardware}",
                )
        axes = published_axes(model, stage, context)
        if axes is not None and profile == "paper":
            panel.set_xlim(0, axes.tok_s_user * 1.02)
            panel.set_ylim(0, axes.tok_s_gpu * 1.02)
        else:
            panel.set_xlim(left=0)
            panel.set_ylim(bottom=0)
        _words(panel, model, context, row, column, len(contexts))
        _count_ticks(panel)
    rings = [("published point", {"marker": "o", "fillstyle": "none", "color": style.PUBLISHED, "linestyle": "none"})]
    _legend(
        figure,
        plt,
        _gpu_keys(mine) + (rings if profile == "paper" else []),
        f"Figure {NUMBERS[stage]}: {stage}, the paper's grid under {profile} assumptions",
    )
    return _save(figure, plt, stem)


def draw_searches(curves: Sequence[Curve], stage: str, stem: Path) -> list[Path]:
    """The automatic search (lines) beside the grid (thin, dashed), logarithmic; a row for each context and number of
    GPUs."""
    mine = [curve for curve in curves if curve.setting.stage == stage]
    profile = mine[0].series.assumptions
    plt = style.pyplot()
    models = _models(mine)
    rows = sorted({(curve.setting.context, curve.setting.gpus) for curve in mine})
    figure, panels = _panels(plt, len(rows), len(models), height=2.0)
    for (row, (context, gpus)), (column, model) in product(enumerate(rows), enumerate(models)):
        panel = panels[row][column]
        for curve in _of(mine, model, context):
            if curve.setting.gpus == gpus:
                _line(panel, curve, dashed=curve.series.search == "grid")
        panel.set_xscale("log")
        panel.set_yscale("log")
        _log_ticks(plt, panel)
        _words(panel, model, context, row, column, len(rows), f", {gpus} GPUs")
        if not any(curve.points for curve in _of(mine, model, context) if curve.setting.gpus == gpus):
            panel.text(0.5, 0.5, "does not fit", transform=panel.transAxes, ha="center", color="#777777")
    keys: list[tuple[str, dict[str, Any]]] = [
        ("e-graph", {"color": "#444444", "linestyle": "-"}),
        ("grid", {"color": "#444444", "linestyle": (0, (4, 2)), "linewidth": 0.9}),
    ]
    _legend(figure, plt, keys, f"{stage.capitalize()}: automatic search beside the grid, {profile} assumptions")
    return _save(figure, plt, stem)


def _models(curves: Sequence[Curve]) -> list[str]:
    return list(dict.fromkeys(curve.setting.model for curve in curves))


def _contexts(curves: Sequence[Curve]) -> list[int]:
    return sorted({curve.setting.context for curve in curves})


def _of(curves: Sequence[Curve], model: str, context: int) -> Iterator[Curve]:
    return (curve for curve in curves if (curve.setting.model, curve.setting.context) == (model, context))


def _panels(plt: Any, rows: int, columns: int, *, height: float) -> tuple[Any, Any]:
    figure, panels = plt.subplots(
        rows, columns, figsize=(1.2 + 2.75 * columns, 1.0 + height * rows), squeeze=False, layout="constrained"
    )
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.62 / (1.0 + height * rows)))
    return figure, panels


def _line(panel: Any, curve: Curve, *, dashed: bool) -> None:
    frontier = curve.frontier
    if not frontier:
        return
    hardware = curve.setting.hardware
    panel.plot(
        [point["tok_s_user"] for point in frontier],
        [point["tok_s_gpu"] for point in frontier],
        color=style.COLOURS.get(hardware, "#444444"),
        marker=style.MARKERS.get(hardware, "o"),
        markersize=2.6 if dashed else 3.4,
        markerfacecolor="white" if dashed else style.COLOURS.get(hardware, "#444444"),
        markeredgewidth=0.8,
        linestyle=(0, (4, 2)) if dashed else "-",
        linewidth=0.9 if dashed else 1.5,
        zorder=2 if dashed else 3,
    )


def _words(panel: Any, model: str, context: int, row: int, column: int, rows: int, more: str = "") -> None:
    panel.set_title(f"{TITLES.get(model, model)}, {show_count(context).upper()}{more}")
    if row == rows - 1:
        panel.set_xlabel(style.SPEED)
    if column == 0:
        panel.set_ylabel(style.RATE)


def _count_ticks(panel: Any) -> None:
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(lambda value, _: short(value))


def _log_ticks(plt: Any, panel: Any) -> None:
    """Ticks at 1, 2 and 5 where an axis has less than two decades, at 1 elsewhere; none that is not named."""
    for axis, (low, high) in ((panel.xaxis, panel.get_xlim()), (panel.yaxis, panel.get_ylim())):
        axis.set_major_locator(plt.LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
        axis.set_major_formatter(lambda value, _: short(value))
        axis.set_minor_formatter(plt.NullFormatter())


def short(value: float) -> str:
    """A round number as ticks have it: `0`, `450`, `15K`, `2.5M`."""
    for scale, letter in ((1e6, "M"), (1e3, "K")):
        if abs(value) >= scale:
            return f"{value / scale:g}{letter}"
    return f"{value:g}"


def _gpu_keys(curves: Sequence[Curve]) -> list[tuple[str, dict[str, Any]]]:
    counts = sorted({curve.setting.gpus for curve in curves}, reverse=True)
    looks: list[dict[str, Any]] = [{"linestyle": "-"}, {"linestyle": (0, (4, 2)), "linewidth": 0.9}]
    return [(f"{count} GPUs", {"color": "#444444", **look}) for count, look in zip(counts, looks)]


def _legend(figure: Any, plt: Any, keys: Sequence[tuple[str, Mapping[str, Any]]], title: str) -> None:
    handles = [
        plt.Line2D([], [], color=style.COLOURS[hardware], marker=style.MARKERS[hardware], label=TITLES[hardware])
        for hardware in HARDWARE
    ]
    handles += [plt.Line2D([], [], **{"label": label, **look}) for label, look in keys]
    height = figure.get_size_inches()[1]
    figure.suptitle(title, x=0.01, y=1 - 0.08 / height, ha="left", va="top", fontsize=12, fontweight="bold")
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.005, 1 - 0.3 / height), ncols=len(handles))


def _save(figure: Any, plt: Any, stem: Path) -> list[Path]:
    """Write SVG and PNG; the same figure gives the same bytes."""
    paths = []
    for suffix, options in _DRAWN.items():
        path = stem.with_suffix(f".{suffix}")
        figure.savefig(path, **options)
        paths.append(path)
    plt.close(figure)
    return paths


def profiles_of(curves: Sequence[Curve]) -> list[Series]:
    """The series that there are curves of, in their order."""
    return list(dict.fromkeys(curve.series for curve in curves))
