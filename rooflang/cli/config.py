"""`rooflang config`."""

from __future__ import annotations

import click

from rooflang.cli.settings import VARIABLE, lines_of, read_settings, settings_file, usual_places

_EXAMPLES = """\b
A file looks like this:
  [optimize]
  hardware = "b300"
  gpus = 64
  context = "64k"
  [agent.run]
  budget = 200
"""


@click.command("config", epilog=_EXAMPLES)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show the file that holds your defaults, and what it says. Options on the command line win over it.

    Paths in it begin where you stand, as on the command line.
    """
    path = settings_file(ctx.find_root().params.get("config"))
    if path is None:
        places = " or ".join(map(str, usual_places()))
        click.echo(f"no file of defaults; one would be read from {places}, or from where --config or {VARIABLE} says")
        return
    click.echo(str(path))
    for line in lines_of(read_settings(path)):
        click.echo(f"  {line}")
