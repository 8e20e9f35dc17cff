"""`rooflang sweep`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflang.cli.output import STDOUT, apart, replacing, writable
from rooflang.cli.program import INTERRUPTED, Group
from rooflang.cli.types import Count, Known

if TYPE_CHECKING:
    from rooflang.sweep.backends import Backend

_EXAMPLES = """\b
Examples:
  rooflang sweep study.toml --jobs 8
  rooflang sweep study.toml --backend dask --address tcp://10.0.0.1:8786
  rooflang sweep export study.sqlite --csv study.csv
"""

_RUN = "run"

#: What a program that met a bug exits with.
_BUG = 1


class _Sweep(Group):
    """A group that runs a sweep where its first argument is a file or an option, and no subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next(iter(args), "")
        meant = "." in first or (first.startswith("-") and first not in ctx.help_option_names)
        return super().parse_args(ctx, [_RUN, *args] if meant else args)


@click.group("sweep", cls=_Sweep, epilog=_EXAMPLES)
def command() -> None:
    """Search many configurations and keep what is found in a file: `rooflang sweep SPEC.toml`, or a subcommand.

    docs/sweeps.md says what a SPEC.toml has.
    """


@command.command(_RUN)
@click.argument("spec", metavar="SPEC.toml")
@click.option(
    "--store", metavar="FILE", help="SQLite file of the results.  [default: SPEC.sqlite, beside the SPEC.toml]"
)
@click.option("--jobs", "workers", default=1, show_default=True, type=Count(), help="Processes on this machine.")
@click.option(
    "--backend",
    default="local",
    show_default=True,
    type=Known("backend", lambda: ("local", "dask", "ray")),
    metavar="local|dask|ray",
    help="Where to compute: on this machine, or on a Dask or Ray cluster.",
)
@click.option("--address", help="Address of the cluster: tcp://HOST:8786 (Dask), HOST:6379 or auto (Ray).")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    spec: str,
    store: str | None,
    workers: int,
    backend: Backend,
    address: str | None,
    quiet: bool,
) -> None:
    """Compute what the store does not have yet. Whatever ended it, the same command goes on from there."""
    from rooflang.report.sweep import show_summary
    from rooflang.search.progress import Progress, silent
    from rooflang.sweep import run_sweep

    progress = Progress(sink=silent if quiet else None)
    try:
        summary = run_sweep(spec, store=store, backend=backend, workers=workers, address=address, progress=progress)
    finally:
        progress.done()
    click.echo(show_summary(summary))
    for crash in list(summary.crashes)[:1]:
        click.echo(crash, err=True)
    if summary.stopped_by == "interrupted":
        ctx.exit(INTERRUPTED)
    if summary.crashes:
        ctx.exit(_BUG)


@command.command("export")
@click.argument("store", metavar="STORE")
@click.option("--csv", "csv_file", metavar="FILE", help="Write comma-separated values; - is standard output.")
@click.option("--jsonl", "json_lines", metavar="FILE", help="Write a JSON object a line; - is standard output.")
def export(store: str, csv_file: str | None, json_lines: str | None) -> None:
    """Write what a store has as flat lines, one for each point. A sweep may be running meanwhile."""
    from rooflang.sweep.export import as_csv, as_json_lines
    from rooflang.sweep.store import Store

    if csv_file is None and json_lines is None:
        raise click.UsageError("Missing option '--csv' or '--jsonl'.")
    wanted = [
        (text, where, write)
        for text, where, write in ((csv_file, "--csv", as_csv), (json_lines, "--jsonl", as_json_lines))
        if text is not None
    ]
    paths = [None if text == STDOUT else writable(text, where=where) for text, where, _ in wanted]
    written = {where: path for path, (_, where, _) in zip(paths, wanted)}
    apart(read={"STORE": Path(os.path.realpath(store))}, written=written)
    with Store(Path(store), make=False) as kept:
        rows = list(kept.rows())
    for path, (_, where, write) in zip(paths, wanted):
        if path is None:
            click.echo(write(rows), nl=False)
            continue
        with replacing(path, where=where) as partial:
            partial.write_text(write(rows), encoding="utf-8")
