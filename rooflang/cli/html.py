"""`--html` and `--plot`: a result as a page, and its frontier as a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflang.cli import options
from rooflang.cli.output import replacing
from rooflang.cli.types import FigureFile, PageFile

if TYPE_CHECKING:
    from rooflang.report.html.page import Origin
    from rooflang.report.html.record import CloseUp
    from rooflang.search.point import Result
    from rooflang.search.prepared import Prepared
    from rooflang.search.progress import Progress
    from rooflang.service import ServicePlan
    from rooflang.sim.result import Overlap

page_option = click.option(
    "--html",
    type=PageFile(),
    metavar="FILE.html",
    help="Also write a page that works offline: each point with its block drawn, timeline, memory and bound.",
)
plot_option = click.option(
    "--plot", type=FigureFile(), metavar="FILE.svg|png|pdf", help="Also draw the frontier, as papers have it."
)


def looked(
    points: Iterable[Callable[[], Prepared]], overlap: Overlap, progress: Progress
) -> tuple[dict[int, CloseUp], bool]:
    """Each point looked at closely, by index, and whether Ctrl-C left them all: what was there before it
    stays."""
    from rooflang.report.html.look import look

    found: dict[int, CloseUp] = {}
    makers = list(points)
    try:
        for index, make in enumerate(makers):
            progress.say(f"looking at point {index + 1} of {len(makers)}")
            found[index] = look(make(), overlap=overlap)
    except KeyboardInterrupt:
        return found, False
    finally:
        progress.done()
    return found, True


def write_result(ctx: click.Context, path: Path, result: Result, asked: Mapping[str, Any], progress: Progress) -> bool:
    """Write the page of what `optimize` found; `asked` are its arguments. False if Ctrl-C came before all points were
    looked at closely, which the page says then."""
    from rooflang.report.frontier import footer
    from rooflang.report.html.page import Origin
    from rooflang.search.problem import Problem
    from rooflang.search.verify import stated_plan

    names = ("model", "hardware", "stage", "context", "assumptions")
    most = max(point.gpus for point in result.frontier)
    problem = Problem.of(gpus=most, **{name: asked[name] for name in names if name in asked})
    points = result.to_json()["frontier"]
    wanted = [] if result.stopped_by == "interrupted" else [partial(stated_plan, problem, point) for point in points]
    closer, whole = looked(wanted, result.frontier[0].sim.overlap, progress)
    origin = Origin(command=options.spell(ctx), facts=(("seed", str(asked.get("seed", 0))), *footer(result)))
    write(path, result.inputs, points, closer, origin)
    return whole


def write_service(ctx: click.Context, path: Path, plan: ServicePlan, progress: Progress) -> bool:
    """Write the page of a planned service: the plans of all pools of its offers. False if Ctrl-C came before all were
    looked at closely."""
    from rooflang.report.html.page import Origin
    from rooflang.report.service import offers, offers_table
    from rooflang.search.verify import stated_plan

    points, wanted = [], []
    for offer in offers(plan):
        for stage, pool in (("prefill", offer.prefill), ("decode", offer.decode)):
            label = f"{offer.mode}, {stage}: {pool.replicas} × {pool.choice.gpus} GPUs"
            points.append(pool.choice.point.to_json() | {"label": label})
            wanted.append(partial(stated_plan, pool.choice.problem, points[-1]))
    closer, whole = looked(wanted, plan.best.decode.choice.point.sim.overlap, progress)
    demand = plan.demand
    facts = (
        ("seed", "0"),
        ("asked for", f"{demand.isl:,} tokens in, {demand.osl:,} out; {demand.words()}"),
    )
    write(
        path,
        plan.inputs,
        points,
        closer,
        Origin(command=options.spell(ctx), facts=facts, table=offers_table(plan), head="The service"),
    )
    return whole


def write(
    path: Path,
    inputs: Mapping[str, Any],
    points: Sequence[Mapping[str, Any]],
    closer: Mapping[int, CloseUp],
    origin: Origin,
    *,
    first: int = 0,
) -> None:
    """Write the page; a reader sees the old file or the whole new one. May raise `RooflangError`."""
    from rooflang.report.html.page import write_page

    with replacing(path, where="--html") as partial:
        write_page(partial, inputs, points, closer, origin, first=first)


def plot(path: Path, inputs: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> None:
    """Draw the frontier. Raises `RooflangError` without matplotlib."""
    from rooflang.report.html.figure import draw_frontier

    with replacing(path, where="--plot") as partial:
        draw_frontier(partial, inputs, points)


def check_libraries(path: Path | None) -> None:
    """Raise `RooflangError` before any work where the figure that is asked for could not be drawn."""
    if path is not None:
        from rooflang.report.reproduction import style

        style.pyplot()
