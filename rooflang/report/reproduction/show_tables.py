"""Tables 7 and 8, and the ratios of peak decode throughput, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rooflang.assumptions import profile
from rooflang.models import load
from rooflang.models.tables import DECIMALS, TableRow, published_ratios, published_rows, table_row
from rooflang.report.markdown import markdown_table
from rooflang.report.numbers import show_count, show_error
from rooflang.report.published import COLUMNS, GPUS, HARDWARE
from rooflang.report.reproduction.frontiers import SERIES, Curve, frontier_jobs
from rooflang.report.reproduction.jobs import Job
from rooflang.report.reproduction.part import Done
from rooflang.report.reproduction.setting import PROFILES, Scope

#: Digits after the point of a printed ratio.
RATIO_DECIMALS = 1


def table_jobs(scope: Scope) -> Iterator[Job]:
    """The grid's curves in the setting of the tables, whatever platforms and numbers of GPUs the scope has."""
    return frontier_jobs(_setting(scope), [series for series in SERIES if series.search == "grid"])


def _setting(scope: Scope) -> Scope:
    return replace(scope, stages=("decode",), gpus=(GPUS,), hardware=(HARDWARE,))


def _curves(done: Done) -> dict[tuple[str, int, str], Curve]:
    """Curves with points, by model, context and profile."""
    found = Done(scope=_setting(done.scope), results=done.results, folder=done.folder).select(search="grid")
    return {
        (curve.setting.model, curve.setting.context, curve.series.assumptions): curve for curve in found if curve.points
    }


def show_tables(done: Done) -> str:
    """Every cell: computed under both profiles, published, and the error under `paper` of the printed digits."""
    lines, exact = [], 0
    known = _curves(done)
    for published in published_rows():
        rows = {name: _row(known.get((published.model, published.context, name)), published) for name in PROFILES}
        paper = rows["paper"]
        if paper is None:
            continue
        for name, title in COLUMNS.items():
            digits = 0 if name == "batch" else DECIMALS
            stated = float(getattr(published, name))
            error = round(float(getattr(paper, name)), digits) / stated - 1.0
            exact += error == 0.0
            cells = (
                f"{getattr(row, name):,.{digits}f}" if row else "–" for row in (paper, published, rows["physical"])
            )
            ours, printed, physical = cells
            lines.append(
                (published.model, show_count(published.context), title, ours, printed, show_error(error), physical)
            )
    heads = ("<model", "context", "<quantity", "computed", "published", "error", "physical")
    return (
        f"Decode on {GPUS} GB300. **{exact} of {len(lines)} cells are as printed** under the `paper` assumptions. The "
        "last column is the same quantity under `physical`, at the largest batch that fits there; a change of the "
        f"batch changes the weights per token with it.\n\n{markdown_table(heads, lines)}"
    )


def _row(curve: Curve | None, published: TableRow) -> TableRow | None:
    if curve is None:
        return None
    batch = max(int(point["batch"]) for point in curve.points)
    return table_row(load(published.model), published.context, batch, profile(curve.series.assumptions))


def show_ratios(done: Done) -> str:
    """Every ratio that the paper prints, computed under both profiles."""
    known = _curves(done)
    lines, said, exact = [], [], 0
    for ratio in published_ratios():
        times = {}
        for name in PROFILES:
            pair = [known.get((model, ratio.context, name)) for model in (ratio.model, ratio.over)]
            peaks = [max(float(point["tok_s_gpu"]) for point in curve.points) for curve in pair if curve is not None]
            if len(peaks) == len(pair):
                times[name] = peaks[0] / peaks[1]
        if "paper" in times:
            printed = round(times["paper"], RATIO_DECIMALS)
            exact += printed == ratio.times
            physical = f"{times['physical']:.{RATIO_DECIMALS}f}" if "physical" in times else "–"
            figures = (f"{value:.{RATIO_DECIMALS}f}" for value in (printed, ratio.times))
            error = show_error(printed / ratio.times - 1.0)
            where = (ratio.model, ratio.over, show_count(ratio.context))
            lines.append((*where, *figures, error, physical))
            said.append(f"{where[0]} over {where[1]} at {where[2]} {printed} ({error})")
    heads = ("<model", "<over", "context", "computed", "published", "error", "physical")
    short = f" **{exact} of {len(lines)} ratios are as printed: {'; '.join(said)}.**" if lines else ""
    return (
        f"Peak decode throughput of one model over that of another, each by the grid on {GPUS} GB300.{short}\n\n"
        + markdown_table(heads, lines)
    )
