"""How figures look: one colour and one marker for each platform, in every figure, and the libraries that draw them."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from rooflang.errors import RooflangError

#: Paul Tol's "bright" scheme, which people with any colour blindness can tell apart; markers tell the same in grey.
COLOURS = {"h200": "#CCBB44", "gh200": "#228833", "b300": "#4477AA", "gb300": "#AA3377"}
MARKERS = {"h200": "v", "gh200": "^", "b300": "s", "gb300": "o"}
SYMBOLS = {"h200": "triangle-down", "gh200": "triangle-up", "b300": "square", "gb300": "circle"}

#: Published points, and the parts of a sum, in the same scheme.
PUBLISHED = "#222222"
PARTS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#999999")

RATE = "throughput, tok/s/GPU"
SPEED = "interactivity, tok/s/user"

_LOOK = {
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.0,
    "svg.hashsalt": "rooflang",  # equal figures, equal files
    "svg.fonttype": "none",
    "figure.dpi": 150,
}


def pyplot() -> Any:
    """`matplotlib.pyplot`, drawing to files and in our look. Raises `RooflangError` if it is not installed."""
    _library("matplotlib").use("Agg")
    plt: Any = importlib.import_module("matplotlib.pyplot")
    plt.rcParams.update(_LOOK)
    return plt


def graph_objects() -> tuple[Any, Any]:
    """`plotly.graph_objects` and `plotly.subplots`. Raises `RooflangError` if it is not installed."""
    _library("plotly")
    return importlib.import_module("plotly.graph_objects"), importlib.import_module("plotly.subplots")


def check_libraries() -> None:
    """Raise `RooflangError` unless figures can be drawn: before the work that they are made of."""
    for name in ("matplotlib", "plotly"):
        _library(name)


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RooflangError(
            f"{name} is not installed", where="figures", expected=name, hint="pip install 'rooflang[report]'"
        ) from error
