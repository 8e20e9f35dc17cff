"""RoofLang: equality saturation for the architecture of LLM inference systems.

The names below are loaded when they are first used, so that importing the package, and with it the command line,
stays quick.

>>> import rooflang
>>> g = rooflang.GraphBuilder("mlp", batch=64, hidden=1024, ffn=4096)
>>> h = g.op("up", "matmul", [g.input("x", "batch hidden"), g.weight("w", "hidden ffn")], "batch ffn")
>>> g.build(h).sizes["ffn"]
4096
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooflang.assumptions import Assumptions, profile
    from rooflang.errors import RooflangError
    from rooflang.hw import Cluster, Mesh
    from rooflang.ir import Graph, GraphBuilder
    from rooflang.models import Model, Workload
    from rooflang.place.layout import Layout
    from rooflang.search.api import optimize, prepare, simulate, simulate_layout
    from rooflang.search.point import Point, Result
    from rooflang.search.progress import Progress
    from rooflang.search.verify import verify_plan
    from rooflang.soundness.check import check_rule
    from rooflang.soundness.report import verify_rules

__version__ = "0.1.0"

__all__ = [
    "Assumptions",
    "Cluster",
    "Graph",
    "GraphBuilder",
    "Layout",
    "Mesh",
    "Model",
    "Point",
    "Progress",
    "Result",
    "RooflangError",
    "Workload",
    "__version__",
    "check_rule",
    "optimize",
    "prepare",
    "profile",
    "simulate",
    "simulate_layout",
    "verify_plan",
    "verify_rules",
]

_HOMES = {
    "Assumptions": "rooflang.assumptions",
    "Cluster": "rooflang.hw",
    "Graph": "rooflang.ir",
    "GraphBuilder": "rooflang.ir",
    "Layout": "rooflang.place.layout",
    "Mesh": "rooflang.hw",
    "Model": "rooflang.models",
    "Point": "rooflang.search.point",
    "Progress": "rooflang.search.progress",
    "Result": "rooflang.search.point",
    "RooflangError": "rooflang.errors",
    "Workload": "rooflang.models",
    "check_rule": "rooflang.soundness.check",
    "optimize": "rooflang.search.api",
    "prepare": "rooflang.search.api",
    "profile": "rooflang.assumptions",
    "simulate": "rooflang.search.api",
    "simulate_layout": "rooflang.search.api",
    "verify_plan": "rooflang.search.verify",
    "verify_rules": "rooflang.soundness.report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
