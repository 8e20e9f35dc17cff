"""`rooflang explain` of a saved result: what its page tells, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from rooflang.cli import html as pages
from rooflang.cli import options
from rooflang.cli.output import JsonTarget
from rooflang.cli.program import INTERRUPTED
from rooflang.errors import ValueRangeError

#: Inputs that every page tells.
_TOLD = ("hash", "version")

#: Schema of the JSON.
CLOSE_UP_SCHEMA = "rooflang.close-up/1"


def explain_result(
    ctx: click.Context,
    path: Path,
    *,
    number: int,
    made_from: str | None,
    hardware: str | None,
    html: Path | None,
    plot: Path | None,
    target: JsonTarget | None,
) -> None:
    """Tell a point of a result, number from 1, and all of them on a page. `made_from` and `hardware` are files that the
    result is of, where the names in it are no registered ones. Nothing is searched: plans are rebuilt and simulated."""
    from rooflang.report.html.look import look
    from rooflang.report.html.page import Origin
    from rooflang.report.saved import saved_points
    from rooflang.search.progress import Progress
    from rooflang.search.verify import stated_plan, stated_problem

    pages.check_libraries(plot)
    inputs, points = saved_points(path, where="RESULT.json")
    if number > len(points):
        raise ValueRangeError(f"point {number} of {len(points)}", where="--point", expected=f"1 to {len(points)}")
    problem = stated_problem(inputs, made_from, hardware)
    overlap = points[0]["overlap"]
    prepared = stated_plan(problem, points[number - 1])
    close = look(prepared, overlap=overlap)
    if target is not None:
        told = {"inputs": inputs, "point": points[number - 1], "close_up": close.to_json()}
        target.write({"schema": CLOSE_UP_SCHEMA, **told})
    if target is None or target.path is not None:
        stated = points[number - 1]
        bound = {name: stated[name] for name in ("bound_s", "bound_scope", "origin")}
        click.echo(_text(ctx, inputs, replace(prepared.point(overlap=overlap), **bound), close))
    if plot is not None:
        pages.plot(plot, inputs, points)
    if html is not None:
        closer, whole = pages.looked([partial(stated_plan, problem, point) for point in points], overlap, Progress())
        facts = tuple(
            (name.replace("_", " "), str(value)) for name, value in ({"seed": 0} | inputs).items() if name not in _TOLD
        )
        pages.write(html, inputs, points, closer, Origin(command=options.spell(ctx), facts=facts), first=number - 1)
        if not whole:
            ctx.exit(INTERRUPTED)


def _text(ctx: click.Context, inputs: Mapping[str, Any], point: Any, close: Any) -> str:
    from rooflang.report.html.words import show_close_up
    from rooflang.report.point import show_point

    return show_point(point, inputs, options.spell(ctx), more=[show_close_up(point, close, inputs)])
