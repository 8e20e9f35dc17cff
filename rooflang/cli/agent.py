"""`rooflang agent`."""

from __future__ import annotations

from pathlib import Path

import click

from rooflang.cli import agent_mcp, options
from rooflang.cli.output import JsonTarget
from rooflang.cli.program import Group
from rooflang.cli.types import Known, hardware_names
from rooflang.errors import RooflangError, ValueRangeError

_EXAMPLES = """\b
Example:
  rooflang agent replay session.journal --json plan.json
  rooflang verify plan.json
"""


class _Doors(Group):
    """A group whose commands `mcp` and `run` may be written as options, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["--mcp"]:
            args = ["mcp", *args[1:]]
        elif args[:1] == ["--run"]:
            args = ["run", *args[2:], *args[:2]]
        return super().parse_args(ctx, args)


@click.group("agent", cls=_Doors, epilog=_EXAMPLES)
def command() -> None:
    """Plans made one primitive at a time: by a person, a script, or a language model."""


command.add_command(agent_mcp.mcp)
command.add_command(agent_mcp.run)


@command.command("replay", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE.journal")
@click.option("--model", metavar="MODEL", help="The config.json or graph file, if the model is no registered one.")
@click.option(
    "--hardware",
    type=Known("hardware", hardware_names, suffix=".toml"),
    metavar="NAME|FILE.toml",
    help="The hardware file, if the platform is no shipped one.",
)
@options.json_file
def replay(file: str, model: str | None, hardware: str | None, target: JsonTarget | None) -> None:
    """Replay a journal, simulating after each of its lines.

    Every line passes the checks that it passed when it was written; the first that does not apply is named, and the
    lines before it are told. With --json
    the plan that it ends with is written as a result, which `rooflang verify` checks and `rooflang simulate --replay`
    looks into.
    """
    from rooflang.agent.replayed import replayed, show_rows
    from rooflang.report.inputs import point_inputs
    from rooflang.search.inputs import digest
    from rooflang.search.point import RESULT_SCHEMA
    from rooflang.search.progress import Progress

    progress = Progress()
    steps = []
    try:
        for step in replayed(_text(file), where=file, model=model, hardware=hardware):
            steps.append(step)
            progress.say(f"{step[0].actions} actions: {step[0].line}")
        progress.done()
    except (RooflangError, KeyboardInterrupt):
        progress.done()
        if steps:  # what was replayed by then is told
            click.echo(show_rows([row for row, _ in steps]), err=target is not None and target.path is None)
        raise
    rows, session = [row for row, _ in steps], steps[-1][1]
    if target is not None:
        point = session.point()
        layout = {"certificate": digest(point.certificate)}
        inputs = point_inputs(point, session.problem, layout=layout, overlap=session.overlap)
        told = {"schema": RESULT_SCHEMA, "inputs": inputs, "point": point.to_json()}
        target.write({**told, "journal": [row.to_json() for row in rows]})
    if target is None or target.path is not None:
        click.echo(show_rows(rows))


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueRangeError(f"cannot be read: {error}", where=file, expected="a journal, as UTF-8 text") from error
