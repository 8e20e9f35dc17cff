"""Agent mode: a plan made one primitive at a time, by a person, a script or a language model.

`session` is the door. The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooflang.agent.actions import Action
    from rooflang.agent.session import Session

__all__ = ["Action", "Session"]

_HOMES = {"Action": "actions", "Session": "session"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rooflang.agent.{_HOMES[name]}"), name)
