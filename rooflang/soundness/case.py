"""What a line of the table of cases says.

Operands are dims in the order of the kind; a mark before them says what they are: `*` a weight, `=` a cache, `~` a
state, `#` ids; nothing, an input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Marks of operands.
MARKS = "*=~#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One operator: kind, operands, dims of the output, attributes; `sizes` are extents that others would not fit."""

    kind: str
    operands: tuple[str, ...]
    out: str
    attrs: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    ids: bool = False


def line(
    kind: str, *operands: str, out: str, sizes: Mapping[str, int] | None = None, ids: bool = False, **attrs: Any
) -> Case:
    """A case in one line."""
    return Case(kind=kind, operands=operands, out=out, attrs=attrs, sizes=sizes or {}, ids=ids)
