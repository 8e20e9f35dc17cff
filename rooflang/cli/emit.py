"""`--emit`: how to launch the nearest plan of a serving stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from rooflang.cli.types import Known
from rooflang.errors import PlacementError, ValueRangeError

if TYPE_CHECKING:
    from rooflang.search.point import Result
    from rooflang.search.progress import Progress
    from rooflang.stacks import Nearest


def stack_names() -> tuple[str, ...]:
    """Names of the serving stacks."""
    from rooflang.stacks import STACKS

    return tuple(STACKS)


option = click.option(
    "--emit",
    "emit_for",
    type=Known("serving stack", stack_names),
    metavar="vllm|sglang|trtllm",
    help="Also tell the nearest plan that a serving stack can run, its launch flags, and what it loses.",
)


def check(name: str | None, model: str) -> None:
    """Raises, before any work is done, for what no stack runs."""
    if name is not None and model.endswith(".rl"):
        raise ValueRangeError("a stack runs models, no graphs", where="--emit", expected="a model or a config.json")


def nearest(name: str, result: Result, asked: Mapping[str, Any], progress: Progress) -> list[Nearest]:
    """For each point of a frontier, the nearest plan of the stack. `asked` are arguments of `optimize`. Ctrl-C keeps
    those of the numbers of GPUs that are done; that a stack has no plan is said, and loses nothing of the result."""
    found: list[Nearest] = []
    try:
        for one in _nearest(name, result, asked, progress):
            found.append(one)
    except KeyboardInterrupt:
        click.echo("interrupted: the nearest plans are not complete", err=True)
    except PlacementError as error:
        click.echo(f"Warning: {error}", err=True)
    return found


def _nearest(name: str, result: Result, asked: Mapping[str, Any], progress: Progress) -> Iterator[Nearest]:
    from rooflang.search.problem import Problem
    from rooflang.stacks import STACKS, nearest_plans

    wanted = ("model", "hardware", "stage", "context", "assumptions")
    for gpus in sorted({point.gpus for point in result.frontier}):
        problem = Problem.of(gpus=gpus, **{key: asked[key] for key in wanted if key in asked})
        points = [point for point in result.frontier if point.gpus == gpus]
        yield from nearest_plans(problem, points, STACKS[name], overlap=points[0].sim.overlap, watch=progress)
