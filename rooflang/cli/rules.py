"""`rooflang rules`."""

from __future__ import annotations

import click

from rooflang.cli.program import Group
from rooflang.cli.types import Known, rule_names


@click.group("rules", cls=Group, invoke_without_command=True, epilog="\b\nExample:\n  rooflang rules show split_kernel")
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the rewrite rules: the primitives of the RoofLang paper (arXiv 2609.12551, Tables 1 and 2)."""
    if ctx.invoked_subcommand is not None:
        return
    from rooflang.report.layout import table
    from rooflang.rules import rule

    records = [rule(name) for name in rule_names()]
    rows = [(record.name, record.exactness.value, record.summary) for record in records]
    click.echo(table(("<rule", "<exactness", "<what it does"), rows))


@command.command("show")
@click.argument("name", type=Known("rule", rule_names))
def show(name: str) -> None:
    """Show a rule: before and after, why it is sound, what it needs, an example that it refuses, its egglog text."""
    from rooflang.report.rules import show_rule
    from rooflang.rules import rule

    click.echo(show_rule(rule(name)))
