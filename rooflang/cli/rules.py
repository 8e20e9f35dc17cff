"""`rooflang rules`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget, tell
from rooflang.cli.program import Group
from rooflang.cli.types import Known, rule_names

if TYPE_CHECKING:
    from rooflang.rules.record import Rule

SCHEMA = "rooflang.rules/1"


@click.group("rules", cls=Group, invoke_without_command=True, epilog="\b\nExample:\n  rooflang rules show split_kernel")
@options.json_file
@click.pass_context
def command(ctx: click.Context, target: JsonTarget | None) -> None:
    """List the rewrite rules: the primitives of the RoofLang paper (arXiv 2609.12551, Tables 1 and 2)."""
    if options.no_output_above(ctx, target):
        return
    from rooflang.report.layout import table
    from rooflang.rules import rule

    records = [rule(name) for name in rule_names()]
    rows = [(record.name, record.exactness.value, record.summary) for record in records]
    tell(target, lambda: _json(records), lambda: table(("<rule", "<exactness", "<what it does"), rows))


@command.command("show")
@click.argument("name", type=Known("rule", rule_names))
@options.json_file
def show(name: str, target: JsonTarget | None) -> None:
    """Show a rule: before and after, why it is sound, what it needs, an example that it refuses, its egglog text."""
    from rooflang.report.rules import show_rule
    from rooflang.rules import rule

    record = rule(name)
    tell(target, lambda: _json([record]), lambda: show_rule(record))


def _json(records: list[Rule]) -> dict[str, Any]:
    return {"schema": SCHEMA, "rules": [record.to_json() for record in records]}
