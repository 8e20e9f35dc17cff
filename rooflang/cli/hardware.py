"""`rooflang hardware`."""

from __future__ import annotations

import click

from rooflang.cli.program import Group
from rooflang.cli.types import Known, hardware_names

_EXAMPLES = """\b
Examples:
  rooflang hardware show b300
  rooflang hardware check my-cluster.toml
"""


@click.group("hardware", cls=Group, invoke_without_command=True, epilog=_EXAMPLES)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the platforms that are shipped. A file of your own describes another one."""
    if ctx.invoked_subcommand is not None:
        return
    from rooflang.hw import load_platform
    from rooflang.report.hardware import show_platforms

    click.echo(show_platforms([load_platform(name) for name in hardware_names()]))


@command.command("show")
@click.argument("name", type=Known("hardware", hardware_names, suffix=".toml"), metavar="NAME|FILE.toml")
def show(name: str) -> None:
    """Show a platform: what one GPU sees of a full domain and of another one, and the source of each number."""
    from rooflang.hw import load_platform
    from rooflang.report.hardware import show_platform

    click.echo(show_platform(load_platform(name)))


@command.command("check")
@click.argument("file", type=click.Path())
def check(file: str) -> None:
    """Check a hardware file: is it well formed, and can a GPU reach its memories, its peers, and every fabric?"""
    from pathlib import Path

    from rooflang.hw import Cluster, load_platform
    from rooflang.sim.fabric import fabric

    platform = load_platform(Path(file))
    cluster = Cluster.of(platform, platform.scale_up.largest)
    lanes = tuple((level.name, way) for level in cluster.levels for way in ("out", "in"))
    fabric(cluster, lanes, ())  # what a simulation asks for
    click.echo(f"{file} is well formed: {cluster}")
