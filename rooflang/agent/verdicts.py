"""Verdicts of rules as results or errors, and the axes that an action names."""

from __future__ import annotations

from typing import Any

from rooflang.agent.actions import Action
from rooflang.errors import RefusedError
from rooflang.hw.mesh import AXIS_NAMES, Mesh
from rooflang.rules import rule
from rooflang.rules.record import Refusal


def asked(action: Action, *args: Any, **given: Any) -> Any:
    """What the rule of an action yields for these arguments. Raises its refusal as `RefusedError`."""
    verdict = rule(action.primitive).check(*args, **given)
    if isinstance(verdict, Refusal):
        raise RefusedError(verdict.code, verdict.reason, where=f"{action.primitive} {action.target}")
    return verdict.result


def axes_of(action: Action, mesh: Mesh) -> tuple[int, ...]:
    """The mesh axes that an action names, by number (default: the first). Raises `RefusedError`."""
    names = [axis.name for axis in mesh.axes]
    if not names:
        raise RefusedError("no-axis", "one GPU has no mesh axis to cut over")
    wanted = action.axis.split(",") if action.axis else [names[0]]
    for name in wanted:
        if name not in names:
            known = ", ".join(names) + ("" if name in AXIS_NAMES else "; axes are separated by commas")
            raise RefusedError("no-such-axis", f"the mesh has no axis {name!r}; it has {known}")
    if len(set(wanted)) < len(wanted):
        raise RefusedError("no-such-axis", f"an axis is named twice: {action.axis}")
    return tuple(names.index(name) for name in wanted)


def needs(action: Action, *fields: str) -> None:
    """Raise `RefusedError` unless the action has these fields, and of all others none but `only`."""
    given = {name for name in action.__struct_fields__ if getattr(action, name) not in ("", None)}
    missing = [name for name in fields if not name.endswith("?") and name not in given]
    extra = given - {name.rstrip("?") for name in fields} - {"primitive", "target", "only"}
    if missing or extra:
        what = f"lacks {', '.join(missing)}" if missing else f"has no use for {', '.join(sorted(extra))}"
        wanted = ", ".join(name.rstrip("?") for name in fields) or "nothing"
        raise RefusedError("other-fields", f"{action.primitive} {what}; it takes {wanted}")
