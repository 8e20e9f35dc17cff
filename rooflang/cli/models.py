"""`rooflang models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget, tell
from rooflang.cli.program import Group

if TYPE_CHECKING:
    from rooflang.models import Description

SCHEMA = "rooflang.models/1"

_EPILOG = "\b\nExamples:\n  rooflang models show deepseek-v4-pro\n  rooflang models show ./config.json"


@click.group("models", cls=Group, invoke_without_command=True, epilog=_EPILOG)
@options.json_file
@click.pass_context
def command(ctx: click.Context, target: JsonTarget | None) -> None:
    """List the registered models. Commands that take one also take a config.json, or the folder that holds one."""
    if options.no_output_above(ctx, target):
        return
    from rooflang.models import load, model_names
    from rooflang.report.layout import table

    heads = ("<model", "layers", "parameters", "active", "cache/token", "context up to")
    found = [load(name).describe() for name in model_names()]
    tell(target, lambda: _json(found), lambda: table(heads, [_row(about) for about in found]))


@command.command("show")
@click.argument("name")
@options.json_file
def show(name: str, target: JsonTarget | None) -> None:
    """Show a model: NAME is a registered name, or a config.json."""
    from rooflang.models import load
    from rooflang.report.layout import facts

    about = load(name).describe()
    titles = ("model", "layers", "parameters", "active per token", "cache per token", "context up to")
    rows = list(zip(titles, _row(about), strict=True))
    if about.kept_bytes:
        rows.append(("cache beside that", f"{about.kept_bytes:,.0f} B of windows and states per request"))
    rows += [("attention", about.attention), ("FFN", about.ffn), ("stored as", about.formats)]
    tell(target, lambda: _json([about]), lambda: facts(rows, indent=""))


@command.command("published")
@options.json_file
def published(target: JsonTarget | None) -> None:
    """Compare the parameters counted here with those that the models' publishers print."""
    from rooflang.models import load
    from rooflang.models.counts import counts
    from rooflang.models.published import published_parameters
    from rooflang.report.layout import table

    rows, data = [], []
    for figures in published_parameters():
        found = counts(load(figures.model))
        row = [figures.model, _billions(figures.total_of(found)), figures.total]
        row += [_billions(figures.active_of(found)), figures.active] if figures.active else ["", ""]
        left_out = dict.fromkeys(filter(None, (figures.total_without, figures.active_without)))
        rows.append([*row, ", ".join(left_out)])
        data.append(
            {
                "model": figures.model,
                "parameters": figures.total_of(found),
                "parameters_published": figures.total,
                "active": figures.active_of(found) if figures.active else None,
                "active_published": figures.active or None,
                "without": list(left_out),
                "source": figures.source,
            }
        )
    heads = ("<model", "parameters", "published", "active", "published", "<without")
    tell(target, lambda: {"schema": "rooflang.published/1", "models": data}, lambda: table(heads, rows))


def _json(models: list[Description]) -> dict[str, Any]:
    return {"schema": SCHEMA, "models": [asdict(about) for about in models]}


def _row(about: Description) -> tuple[str, ...]:
    return (
        about.name,
        str(about.layers),
        _billions(about.parameters),
        _billions(about.active_parameters),
        f"{about.kv_bytes_per_token:,.0f} B",
        f"{about.max_context:,}",
    )


def _billions(count: float) -> str:
    return f"{count / 1e9:,.2f} B"
