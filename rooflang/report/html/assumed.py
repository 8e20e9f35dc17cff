"""The assumptions of a result, each with its value, and what it means."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from typing import Any

from rooflang.assumptions import PHYSICAL, PROFILES, Assumptions
from rooflang.search.inputs import stated_assumptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """One assumption. `changed` says that it is not what the profile of that name has; `says` is its docstring."""

    name: str
    value: str
    changed: bool
    says: str


def assumed(inputs: Mapping[str, Any]) -> Iterator[Assumed]:
    """All assumptions that the inputs of a result name. Raises `ValueRangeError` for inputs that name none."""
    taken = stated_assumptions(inputs)
    changed = taken.differs_from(PROFILES.get(taken.name, PHYSICAL))
    meaning = _meanings()
    for field in fields(Assumptions):
        if field.name != "name":
            value = getattr(taken, field.name)
            yield Assumed(
                name=field.name, value=_word(value), changed=field.name in changed, says=meaning.get(field.name, "")
            )


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return f"{len(value)} numbers" if value else "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


@cache
def _meanings() -> dict[str, str]:
    """The docstring of each field, which the source has and the class does not; none where there is no source."""
    try:
        body = ast.parse(inspect.getsource(Assumptions)).body[0]
    except OSError:
        return {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    return {
        statement.target.id: " ".join(str(below.value.value).split())
        for statement, below in pairwise(statements)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
    }
