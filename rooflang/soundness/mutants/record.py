"""What a mutant is: a claim about a rule that was broken on purpose, and that some example has to refute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rooflang.ir.cut import Cut, CutKind
from rooflang.ir.op import Op, signature
from rooflang.ir.reference import Reference
from rooflang.soundness.search import Property


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`rule` is the primitive that was broken, `claim` what would be true if the breakage did not matter."""

    name: str
    rule: str
    claim: Property


Broken = Callable[[Reference], Reference]


def row(dim: str, *kinds: CutKind, **changes: Any) -> Callable[[Op], list[Cut]]:
    """The row of that dim (and kind) with some fields changed."""

    def pick(op: Op) -> list[Cut]:
        found = next(c for c in signature(op) if c.dim == dim and (not kinds or c.kind in kinds))
        return [replace(found, **changes)]

    return pick


def new(kind: CutKind, operands: str, out: str, **fields: Any) -> Callable[[Op], list[Cut]]:
    """A row that no signature has."""
    return lambda op: [Cut(kind=kind, dim=out, operands=tuple(operands.split()), out=out, **fields)]


def fold(**changes: Any) -> Broken:
    """Another way to combine or finish partial states."""

    def change(known: Reference) -> Reference:
        assert known.fold is not None
        return replace(known, fold=replace(known.fold, **changes))

    return change


def summary(**changes: Any) -> Broken:
    """Another summary, or another way to merge it."""

    def change(known: Reference) -> Reference:
        assert known.summary is not None
        return replace(known, summary=replace(known.summary, **changes))

    return change
