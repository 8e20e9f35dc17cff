"""`rooflang reproduce`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from rooflang.cli.output import replacing
from rooflang.cli.types import Count, Known, Seconds
from rooflang.errors import RooflangError, ValueRangeError

if TYPE_CHECKING:
    from rooflang.report.reproduction.setting import Scope
    from rooflang.search.effort import Depth

ALL = "all"

_EXAMPLES = """\b
Examples:
  rooflang reproduce
  rooflang reproduce --what tables --out reproduced
  rooflang reproduce --what figures --model deepseek-v4-flash --gpus 8
"""


def _parts() -> tuple[str, ...]:
    from rooflang.report.reproduction.report import PARTS

    return (*PARTS, ALL)


def _models() -> tuple[str, ...]:
    from rooflang.report.reproduction.setting import MODELS

    return MODELS


@click.command("reproduce", epilog=_EXAMPLES)
@click.option(
    "--what",
    default=ALL,
    show_default=True,
    type=Known("part", _parts),
    metavar="tables|ratios|points|figures|cases|claims|needs|assumptions|all",
    help="Tables 7 and 8; ratios of peak throughput; published points; Figures 3 and 4; the agent's cases; the "
    "analysis, checked; what explains it; what separates the profiles; or all of it.",
)
@click.option(
    "--out",
    "folder",
    default="reproduced",
    show_default=True,
    metavar="DIR",
    help="Folder for the report, its figures, and the results that it is made of. What is there is not computed again.",
)
@click.option(
    "--model", "models", multiple=True, type=Known("model", _models), help="Only this model; may be repeated."
)
@click.option("--gpus", type=Count(), multiple=True, help="Only clusters of so many GPUs, 8 or 64.")
@click.option(
    "--effort",
    default="look",
    show_default=True,
    type=Known("effort", lambda: ("look", "full")),
    metavar="look|full",
    help="How hard the automatic search tries in each setting of the figures; full needs a longer limit, too.",
)
@click.option(
    "--search-limit",
    "limit_s",
    default=600.0,
    show_default=True,
    type=Seconds(),
    help="Longest time of the automatic search in one of these settings; its best plans until then count.",
)
@click.option("--jobs", "workers", type=Count(), help="Processes to use.  [default: one for each core]")
def command(
    what: str,
    folder: str,
    models: tuple[str, ...],
    gpus: tuple[int, ...],
    effort: str,
    limit_s: float,
    workers: int | None,
) -> None:
    """Recompute the evaluation of the RoofLang paper (arXiv 2609.12551), beside what it publishes, as Markdown.

    All four models on all four platforms, under the paper's assumptions and under physical ones, by the paper's grid
    and by the automatic search. Each result is kept as it is done: after Ctrl-C the same command goes on.
    """
    from rooflang.report.reproduction.report import PARTS, REPORT, reproduce
    from rooflang.search.progress import Progress

    scope, target = _scope(models, gpus, effort, limit_s), _folder(folder)
    progress = Progress()
    try:
        report, ran = reproduce(
            tuple(PARTS) if what == ALL else (what,), target, progress, scope=scope, workers=workers
        )
    finally:
        progress.done()
    with replacing(target / REPORT, where="--out") as path:
        path.write_text(report, encoding="utf-8")
    click.echo(
        f"wrote {target / REPORT}: {len(ran.results)} results, {ran.kept} of them from before; "
        f"{ran.cpu_s / 60:.1f} minutes of one core"
    )
    if ran.errors:
        name, error = min(ran.errors.items())
        raise RooflangError(
            f"{len(ran.errors)} results are missing; {name}: {error}", hint="the same command tries them again"
        )


def _scope(models: tuple[str, ...], gpus: tuple[int, ...], effort: str, limit_s: float) -> Scope:
    """All of the evaluation, or the part that was asked for. Raises `ValueRangeError`."""
    from rooflang.report.reproduction.setting import GPUS, MODELS, Scope

    for count in gpus:
        if count not in GPUS:
            raise ValueRangeError(f"{count} GPUs", where="--gpus", expected=" or ".join(map(str, GPUS)))
    return Scope(
        models=tuple(model for model in MODELS if model in models) or MODELS,
        gpus=tuple(count for count in GPUS if count in gpus) or GPUS,
        effort=cast("Depth", effort),
        limit_s=limit_s,
    )


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
