"""The egglog program of one block: everything that a saturation depends on, as text."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from rooflang.eqsat import core
from rooflang.rules import rule, rule_names
from rooflang.rules.theory import Theory

#: The ruleset that runs all others together.
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Commands to load, and the primitives whose rules are among them. Blocks of equal structure have equal
    programs.
    """

    commands: tuple[str, ...]
    rules: tuple[str, ...]


def program(theory: Theory, disabled: Set[str]) -> Program:
    """The program of a block without the disabled primitives. Raises `UnknownNameError` for a name that is no rule."""
    for name in sorted(disabled):
        rule(name)
    records = [rule(name) for name in rule_names() if name not in disabled]
    parts = {record.name: record.egglog for record in records if record.egglog is not None}
    rulesets = (*core.RULESETS, *parts)
    shape = theory.shape
    commands = [*core.schema(shape)]
    commands += [f"(ruleset {name})" for name in rulesets]
    commands += core.rules(shape)
    for part in parts.values():
        commands += part.rules(shape)
    commands.append(f"(unstable-combined-ruleset {ALL} {' '.join(rulesets)})")
    commands += core.terms(theory)
    commands += core.facts(theory)
    for part in parts.values():
        commands += part.facts(theory)
    return Program(commands=tuple(commands), rules=tuple(parts))
