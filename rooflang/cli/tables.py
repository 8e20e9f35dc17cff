"""`rooflang tables`."""

from __future__ import annotations

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget, tell


@click.command("tables", epilog="\b\nExample:\n  rooflang tables --json tables.json")
@options.json_file
def command(target: JsonTarget | None) -> None:
    """Recompute the RoofLang paper's Tables 7 and 8 (arXiv 2609.12551): decode on 64 GB300, its own assumptions.

    Each number is printed beside the published one, with the relative error. It takes about half a minute.
    """
    from rooflang.report.published import compare_tables, tables_json
    from rooflang.report.tables import show_tables
    from rooflang.search.progress import Progress

    progress = Progress()
    try:
        rows = list(compare_tables(progress))
    finally:
        progress.done()
    tell(target, lambda: tables_json(rows), lambda: show_tables(rows))
