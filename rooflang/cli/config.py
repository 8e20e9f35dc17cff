"""`rooflang config`."""

from __future__ import annotations

import click

from rooflang.cli.settings import VARIABLE, as_defaults, lines_of, read_settings, settings_file, usual_places

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
    """Show the file that holds your defaults, and what it says, and check the names in it. Options on the command line
    win over it.

    Paths in it begin where you stand, as on the command line.
    """
    path = settings_file(ctx.find_root().params.get("config"))
    if path is None:
        places = " or ".join(map(str, usual_places()))
        click.echo(f"no file of defaults; one would be read from {places}, or from where --config or {VARIABLE} says")
        return
    tables = read_settings(path)
    program = ctx.find_root().command
    assert isinstance(program, click.Group)
    for name in tables:  # each command looks at its own table only
        as_defaults(tables, program, name, path)
    click.echo(str(path))
    for line in lines_of(tables):
        click.echo(f"  {line}")
