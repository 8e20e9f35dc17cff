"""`rooflang verify`."""

from __future__ import annotations

from pathlib import Path

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget, tell
from rooflang.cli.types import Known, hardware_names
from rooflang.errors import ValueRangeError

_EXAMPLES = """\b
Examples:
  rooflang optimize deepseek-v4-pro --hardware b300 --gpus 8 --context 64k --json out.json
  rooflang verify out.json
  rooflang verify --rules
"""

#: Exit code where a rule is refuted: that is a bug in RoofLang.
_REFUTED = 1


@click.command("verify", epilog=_EXAMPLES)
@click.argument("file", metavar="[FILE.json]", required=False)
@click.option("--rules", is_flag=True, help="Put the rewrite rules on trial instead.")
@click.option(
    "--model",
    metavar="MODEL",
    help="The config.json or graph file that the result is of, if its model is no registered one.",
)
@click.option(
    "--hardware",
    type=Known("hardware", hardware_names, suffix=".toml"),
    metavar="NAME|FILE.toml",
    help="The hardware file that the result is for, if its platform is no shipped one.",
)
@options.json_file
@click.pass_context
def command(
    ctx: click.Context,
    file: str | None,
    rules: bool,
    model: str | None,
    hardware: str | None,
    target: JsonTarget | None,
) -> None:
    """Check what --json wrote, without trusting anything in it.

    The graph and the cluster are built anew; every plan is rebuilt from its certificate, evaluated exactly beside the
    unsharded graph, and simulated; every number in the file has to come out. With --rules: random examples, mutants,
    lemmas and derivations for each rewrite rule, a minute or two.
    """
    if rules == (file is not None):
        what = "a file and --rules" if rules else "nothing to verify"
        raise ValueRangeError(what, where="verify", expected="FILE.json, or --rules")
    if rules:
        ctx.exit(_verify_rules(target))
    _verify_file(Path(str(file)), model, hardware, target)


def _verify_file(path: Path, model: str | None, hardware: str | None, target: JsonTarget | None) -> None:
    from rooflang.search.progress import Progress
    from rooflang.search.verify import verify_plan

    progress = Progress()
    try:
        found = verify_plan(path, model=model, hardware=hardware, say=progress.say)
    finally:
        progress.done()
    if target is not None:
        target.write(found.to_json())
    if target is None or target.path is not None:
        for point in found.points:
            click.echo(f"batch {point.batch}: {point.steps} primitives, equal to the unsharded graph; {point.plan}")
        click.echo(f"accepted: {len(found.points)} points of {found.model}")


def _verify_rules(target: JsonTarget | None) -> int:
    from rooflang.search.progress import Progress
    from rooflang.soundness.report import show, verify_rules

    progress = Progress()
    try:
        report = verify_rules(say=progress.say)
    finally:
        progress.done()
    tell(target, report.to_json, lambda: show(report))
    return 0 if report.sound else _REFUTED
