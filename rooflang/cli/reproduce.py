"""`rooflang reproduce`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rooflang.cli.types import Known
from rooflang.errors import ValueRangeError

ALL = "all"


def _parts() -> tuple[str, ...]:
    from rooflang.report.reproduce import PARTS

    return (*PARTS, ALL)


@click.command("reproduce", epilog="\b\nExample:\n  rooflang reproduce --what tables --out reproduced")
@click.option(
    "--what",
    default=ALL,
    show_default=True,
    type=Known("part", _parts),
    metavar="tables|ratios|all",
    help="Tables 7 and 8, the ratios of peak decode throughput, or both.",
)
@click.option(
    "--out",
    "folder",
    metavar="DIR",
    help="Folder for the report and its parts; parts that are in it already are not computed again.",
)
def command(what: str, folder: str | None) -> None:
    """Recompute the evaluation of the RoofLang paper (arXiv 2609.12551), beside what it publishes, as Markdown.

    The paper's own assumptions, on 64 GB300. It takes a minute. Without --out the report goes to standard output.
    """
    from rooflang.report.reproduce import PARTS, reproduce
    from rooflang.search.progress import Progress

    target = None if folder is None else _folder(folder)
    progress = Progress()
    try:
        report = reproduce(tuple(PARTS) if what == ALL else (what,), target, progress)
    finally:
        progress.done()
    if target is None:
        click.echo(report)
        return
    path = target / "report.md"
    path.write_text(report, encoding="utf-8")
    click.echo(f"wrote {path}")


def _folder(text: str) -> Path:
    """The folder, made if there is none. Raises `ValueRangeError` before any work is done."""
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueRangeError(f"cannot make {text!r}: {error.strerror}", where="--out", expected="a folder") from error
    if not os.access(path, os.W_OK):
        raise ValueRangeError(f"cannot write to {text!r}: permission denied", where="--out", expected="a folder")
    return path
