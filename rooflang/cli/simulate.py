"""`rooflang simulate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from rooflang.cli import html as pages
from rooflang.cli import options
from rooflang.cli.assume import assumed
from rooflang.cli.output import JsonTarget, replacing, tell
from rooflang.cli.types import Count, Layers, TraceFile
from rooflang.errors import ValueRangeError

if TYPE_CHECKING:
    from rooflang.search.prepared import Prepared
    from rooflang.sim.result import Bracket, Overlap

_EXAMPLES = """\b
Examples:
  rooflang simulate deepseek-v4-pro --hardware b300 --gpus 8 --context 64k --batch 512 --dp 8
  rooflang simulate deepseek-v4-pro --hardware b300 --gpus 256 --context 64k --batch 4k --dp 16 --pp 16 \\
      --partition 3,4x14,2 --assumptions paper
  rooflang simulate kimi-k3 --hardware gb300 --gpus 64 --context 64k --batch 64 --dp 64 \\
      --overlap all --explain --trace step.json.gz
"""

#: Options that say what a replayed plan says itself.
_GRID = ("dp", "cp", "pp", "partition")


@click.command("simulate", epilog=_EXAMPLES)
@options.model
@options.task
@click.option(
    "--batch", type=Count(), help="Requests in a step, a multiple of DP.  [default: 1; for a graph its dim batch]"
)
@click.option(
    "--dp", default=1, show_default=True, type=Count(), help="Data parallelism: ranks that share the requests."
)
@click.option(
    "--cp", default=1, show_default=True, type=Count(), help="Context parallelism: ranks that share each context."
)
@click.option(
    "--pp", default=1, show_default=True, type=Count(), help="Pipeline stages. Experts lie on DP × CP ranks of a stage."
)
@click.option(
    "--partition", type=Layers(), help="Layers of each stage: 3,4,4,2, or 3,4x14,2.  [default: as even as can be]"
)
@click.option(
    "--replay",
    type=click.Path(),
    metavar="FILE.json",
    help="Instead of these four: the plan of a point in a file that --json wrote. Its batch is the default.",
)
@click.option("--point", "number", type=Count(), help="Which point of that file, counted from 1.  [default: 1]")
@options.overlap(
    *("perfect", "none", "two-batch", "all"),
    text="Computation and communication hide each other as far as they can, or never; two halves of the batch are "
    "interleaved; or all three beside each other.",
)
@options.assumptions
@click.option("--explain", is_flag=True, help="Also tell the critical path, what bounds it, and what would help.")
@click.option(
    "--trace",
    type=TraceFile(),
    metavar="FILE.json[.gz]",
    help="Also write the timeline, for Perfetto (ui.perfetto.dev) or chrome://tracing.",
)
@click.option("--explicit", is_flag=True, help="Simulate every rank, not one of each class: the same, but slower.")
@pages.page_option
@options.json_file
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    context: int | None,
    overlap: Literal[Overlap, "all"],
    explain: bool,
    trace: Path | None,
    explicit: bool,
    html: Path | None,
    target: JsonTarget | None,
    **configuration: Any,
) -> None:
    """Simulate one step of MODEL laid out as DP × CP × PP = GPUs, or as a plan that `optimize` found.

    MODEL is a registered name (`rooflang models`), a config.json, or a compute graph in a file that ends in .rl. Under
    all overlaps, everything but the comparison of them is told for perfect overlap.
    """
    tokens = options.check_workload(ctx, model, context)
    _check_ranks(overlap, explicit)
    configuration["assumptions"] = assumed(configuration)
    prepared, layout = _prepare(ctx, model, tokens, configuration)
    from rooflang.report.bracket import bracket_json, show_bracket
    from rooflang.report.explanation import explanation_json, show_explanation
    from rooflang.report.inputs import point_inputs
    from rooflang.report.point import show_point
    from rooflang.search.point import RESULT_SCHEMA

    mode: Overlap = "perfect" if overlap == "all" else overlap
    point = prepared.point(overlap=mode, explicit=explicit)
    inputs = point_inputs(point, prepared.problem, layout=layout, overlap=overlap)
    told: dict[str, Any] = {"schema": RESULT_SCHEMA, "inputs": inputs, "point": point.to_json()}
    parts = []
    bracket = prepared.bracket() if overlap == "all" else None
    if bracket is not None:
        told["bracket"] = bracket_json(bracket)
        parts.append(show_bracket(bracket))
    if explain:
        explanation = prepared.explain(overlap=mode)
        told["explanation"] = explanation_json(explanation)
        parts.append(show_explanation(explanation))
    tell(target, lambda: told, lambda: show_point(point, inputs, options.spell(ctx), more=parts))
    if trace is not None:
        with replacing(trace, where="--trace") as path:
            prepared.write_trace(path, overlap=mode)
    if html is not None:
        _write_page(ctx, html, prepared, told, mode, bracket)


def _write_page(
    ctx: click.Context,
    path: Path,
    prepared: Prepared,
    told: Mapping[str, Any],
    overlap: Overlap,
    bracket: Bracket | None,
) -> None:
    """The page of a simulated point, below the comparison of overlaps if that was asked for."""
    from rooflang.report.bracket import bracket_table
    from rooflang.report.html.look import look
    from rooflang.report.html.page import Origin

    compared = None if bracket is None else bracket_table(bracket)
    head = "" if bracket is None else "Every overlap"
    facts = (("seed", "none: nothing is drawn"),)
    origin = Origin(command=options.spell(ctx), facts=facts, table=compared, head=head)
    pages.write(path, told["inputs"], [told["point"]], {0: look(prepared, overlap=overlap)}, origin)


def _check_ranks(overlap: Literal[Overlap, "all"], explicit: bool) -> None:
    """Raises `ValueRangeError` where every rank is asked for under every overlap."""
    if explicit and overlap == "all":
        raise ValueRangeError("every rank under every overlap", where="--explicit", expected="one mode of --overlap")


def _prepare(
    ctx: click.Context, model: str, context: int, options_given: dict[str, Any]
) -> tuple[Prepared, Mapping[str, Any]]:
    """The configuration, and what says in the inputs how it is laid out."""
    from rooflang.search.api import prepare

    replayed, number = options_given.pop("replay"), options_given.pop("number")
    if replayed is None:
        if number is not None:
            raise ValueRangeError("there is no file to take it from", where="--point", expected="--replay FILE.json")
        layout = {"dp": options_given["dp"], "cp": options_given["cp"]}
        return prepare(model, context=context, **options_given), layout
    from rooflang.report.saved import saved_point
    from rooflang.search.inputs import digest

    for name in _GRID:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ValueRangeError("the plan says itself how it is laid out", where=f"--{name}", expected="no --replay")
    point = saved_point(Path(replayed), number or 1, where="--replay")
    options_given["batch"] = options_given["batch"] or point["batch"]
    given = {name: value for name, value in options_given.items() if name not in _GRID}
    layout = {"certificate": digest(point["certificate"])}
    return prepare(model, context=context, certificate=point["certificate"], **given), layout
