"""`rooflang validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget
from rooflang.cli.types import Count, Known, Share
from rooflang.errors import GraphError

if TYPE_CHECKING:
    from rooflang.ir.graph import Graph
    from rooflang.models.workload import Stage

_EXAMPLES = """\b
Examples:
  rooflang validate model.rl --trace trace.json
  rooflang validate llama-3.1-8b --stage prefill --context 4k --trace trace.json.gz --tolerance 2%
"""


@click.command("validate", epilog=_EXAMPLES)
@options.model
@click.option(
    "--trace",
    "trace",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="The trace, maybe .gz.",
)
@click.option(
    "--stage", default="decode", show_default=True, type=Known("stage", lambda: ("decode", "prefill")), metavar="…"
)
@click.option("--context", type=Count(), help="Tokens of context of each request. A model needs it.")
@click.option("--batch", type=Count(), default=1, show_default=True, help="Requests in the step of a model.")
@click.option(
    "--tolerance", type=Share(), default="1%", show_default=True, help="Difference of FLOPs that is accepted."
)
@options.json_file
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    trace: Path,
    stage: str,
    context: int | None,
    batch: int,
    tolerance: float,
    target: JsonTarget | None,
) -> None:
    """Compare a graph with what PyTorch has run: operators, FLOPs and bytes of products and attention.

    The trace is the profiler's, recorded with record_shapes=True, or an execution trace. A product may be split or
    fused on one side: only sums count. Exits with 2 where FLOPs differ by more than --tolerance.
    """
    tokens = options.check_workload(ctx, model, context)
    from rooflang.importers import compare, graph_work, read_trace
    from rooflang.report.imported import show_comparison

    works = read_trace(trace)
    found = compare(graph_work(_graph(model, stage, tokens, batch)), works)
    if target is not None:
        target.write(found.to_json())
    if target is None or target.path is not None:
        click.echo(show_comparison(found))
    if found.difference > tolerance:
        raise GraphError(
            f"FLOPs of the graph and of the trace differ by {found.difference:.2%}",
            where=str(trace),
            expected=f"at most {tolerance:.2%}",
        )


def _graph(model: str, stage: str, context: int, batch: int) -> Graph:
    """The graph in a file, or one step of a model."""
    from rooflang.ir.text import read
    from rooflang.models import Workload, load

    if model.endswith(".rl"):
        return read(Path(model))
    return load(model).build(Workload(stage=cast("Stage", stage), context=context, batch=batch))
