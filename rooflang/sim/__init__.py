"""Discrete-event simulation: contention, streams, liveness and memory, on an exact symmetry quotient.

The names below are loaded when they are first used. Functions that are called like their module are imported from it:
`from rooflang.sim.simulate import simulate`, and so `explain` and `verdict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooflang.sim.explain import Explanation
    from rooflang.sim.fleet import DeviceOverride, LinkOverride
    from rooflang.sim.plan_trace import write_plan_trace
    from rooflang.sim.result import Bracket, SimResult
    from rooflang.sim.simulate import bracket
    from rooflang.sim.verdict import Verdict

__all__ = [
    "Bracket",
    "DeviceOverride",
    "Explanation",
    "LinkOverride",
    "SimResult",
    "Verdict",
    "bracket",
    "write_plan_trace",
]

_HOMES = {
    "Bracket": "result",
    "DeviceOverride": "fleet",
    "Explanation": "explain",
    "LinkOverride": "fleet",
    "SimResult": "result",
    "Verdict": "verdict",
    "bracket": "simulate",
    "write_plan_trace": "plan_trace",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rooflang.sim.{_HOMES[name]}"), name)
