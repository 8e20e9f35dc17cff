"""`rooflang hardware`."""

from __future__ import annotations

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget, tell
from rooflang.cli.program import Group
from rooflang.cli.types import Known, hardware_names

_EXAMPLES = """\b
Examples:
  rooflang hardware show b300
  rooflang hardware check my-cluster.toml
"""


@click.group("hardware", cls=Group, invoke_without_command=True, epilog=_EXAMPLES)
@options.json_file
@click.pass_context
def command(ctx: click.Context, target: JsonTarget | None) -> None:
    """List the platforms that are shipped. A file of your own describes another one."""
    if options.no_output_above(ctx, target):
        return
    from rooflang.hw import load_platform
    from rooflang.report.hardware import platforms_json, show_platforms

    found = [load_platform(name) for name in hardware_names()]
    tell(target, lambda: platforms_json(found), lambda: show_platforms(found))


@command.command("show")
@click.argument("name", type=Known("hardware", hardware_names, suffix=".toml"), metavar="NAME|FILE.toml")
@options.json_file
def show(name: str, target: JsonTarget | None) -> None:
    """Show a platform: what one GPU sees of a full domain and of another one, and the source of each number."""
    from rooflang.hw import load_platform
    from rooflang.report.hardware import platforms_json, show_platform

    platform = load_platform(name)
    tell(target, lambda: platforms_json([platform]), lambda: show_platform(platform))


@command.command("check")
@click.argument("file", type=click.Path())
@options.json_file
def check(file: str, target: JsonTarget | None) -> None:
    """Check a hardware file: is it well formed, and can a GPU reach its memories, its peers, and every fabric?"""
    from pathlib import Path

    from rooflang.hw import Cluster, load_platform
    from rooflang.report.hardware import platforms_json
    from rooflang.sim.fabric import fabric

    platform = load_platform(Path(file))
    cluster = Cluster.of(platform, platform.scale_up.largest)
    lanes = tuple((level.name, way) for level in cluster.levels for way in ("out", "in"))
    fabric(cluster, lanes, ())  # what a simulation asks for
    tell(target, lambda: platforms_json([platform]), lambda: f"{file} is well formed: {cluster}")
