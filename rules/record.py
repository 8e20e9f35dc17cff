"""What a rule is: one record per primitive of the RoofLang paper (arXiv 2609.12551, Tables 1 and 2).

Saturation loads the record's egglog text and facts; a single rewrite, made by a person or an agent, asks the record's
`check`. Both read the same code, so that they cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from textwrap import indent
from typing import Any

from rooflang.rules.theory import Shape, Theory


class Exactness(StrEnum):
    """Whether a rewrite keeps every floating-point operation, or re-associates a reduction (equal over the reals)."""

    EXACT = "exact"
    REASSOCIATING = "reassociating"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ok:
    """The rule applies. `result` is what one application yields: a `Cut`, a `Transfer`, an `Op`, a choice, a name."""

    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The rule does not apply. `code` is short and stable (`not-partial`), `reason` is for people."""

    code: str
    reason: str


Verdict = Ok | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Egglog:
    """A rule's part of the e-graph: its rewrite rules, in a ruleset of the rule's name, and the facts that they match.

    `rules(shape)` is text for the arities, fusions and axes that occur; `facts(theory)` are the facts of one block.
    Each item is one egglog command.
    """

    rules: Callable[[Shape], tuple[str, ...]]
    facts: Callable[[Theory], Iterable[str]] = lambda theory: ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One primitive.

    `before` and `after` are the equation in words of lifted values, `why` says why it is sound and `evidence` what
    tests it. `check` decides one application (its own parameters are documented where it is defined). `egglog` is None
    for primitives that change order or place and no term; `table` lists named instances, a line each. `fires` and
    `refused` run `check` on one example each.
    """

    name: str
    summary: str
    before: str
    after: str
    why: str
    preconditions: tuple[str, ...]
    exactness: Exactness
    evidence: str
    check: Callable[..., Verdict]
    fires: Callable[[], Verdict]
    refused: Callable[[], Verdict]
    egglog: Egglog | None = None
    table: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The words of the record, as JSON-ready data."""
        return {
            "name": self.name,
            "summary": self.summary,
            "before": self.before,
            "after": self.after,
            "why": self.why,
            "preconditions": list(self.preconditions),
            "exactness": self.exactness.value,
            "evidence": self.evidence,
            "table": list(self.table),
            "in_the_egraph": self.egglog is not None,
        }

    def describe(self) -> str:
        """The whole record as text for people: law, reason, pre-conditions, examples, egglog rules."""
        refusal = self.refused()
        refused = f"{refusal.code}: {refusal.reason}" if isinstance(refusal, Refusal) else ""
        parts = [
            f"{self.name} ({self.exactness.value})",
            f"  {self.summary}",
            "",
            f"  before   {self.before}",
            f"  after    {self.after}",
            f"  sound    {self.why}",
            *(f"  needs    {each}" for each in self.preconditions),
            f"  refuses  for example {refused}",
            f"  tested   {self.evidence}",
            *(f"  named    {each}" for each in self.table),
            "",
        ]
        if self.egglog is None:
            parts.append("  It changes no term of the e-graph: order and place only.")
        else:
            parts.append("  In the e-graph (operators of two operands, two mesh axes):")
            text = "\n".join(self.egglog.rules(Shape(axes=2, arities=(2,), fusions=(((-1, 1), (0,)),), joint=(3,))))
            parts.append(indent(text, "    "))
        return "\n".join(parts)
