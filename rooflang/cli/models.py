"""`rooflang models`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflang.cli.program import Group

if TYPE_CHECKING:
    from rooflang.models import Description


@click.group(
    "models", cls=Group, invoke_without_command=True, epilog="\b\nExample:\n  rooflang models show deepseek-v4-pro"
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the registered models. Commands that take one also take the config.json of a model of the same family."""
    if ctx.invoked_subcommand is not None:
        return
    from rooflang.models import load, model_names
    from rooflang.report.layout import table

    rows = [_row(load(name).describe()) for name in model_names()]
    click.echo(table(("<model", "layers", "parameters", "active", "context up to"), rows))


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Show a model: NAME is a registered name, or a config.json."""
    from rooflang.models import load
    from rooflang.report.layout import facts

    about = load(name).describe()
    titles = ("model", "layers", "parameters", "active per token", "context up to")
    rows = [*zip(titles, _row(about), strict=True), ("attention", about.attention), ("FFN", about.ffn)]
    click.echo(facts(rows, indent=""))


def _row(about: Description) -> tuple[str, ...]:
    return (
        about.name,
        str(about.layers),
        _show_parameters(about.parameters),
        _show_parameters(about.active_parameters),
        f"{about.max_context:,}",
    )


def _show_parameters(count: float) -> str:
    return f"{count / 1e9:,.1f} B"
