"""`rooflang optimize`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget
from rooflang.cli.program import INTERRUPTED
from rooflang.cli.types import Count, Counts, Known, Seconds, rule_names

if TYPE_CHECKING:
    from rooflang.search.api import Search
    from rooflang.sim.result import Overlap

_EXAMPLES = """\b
Examples:
  rooflang optimize deepseek-v4-pro --hardware b300 --gpus 8 --context 64k
  rooflang optimize config.json --hardware gb300 --gpus 64 --stage prefill --context 8k --json out.json
  rooflang optimize graph.rl --hardware h200 --gpus 4
"""


@click.command("optimize", epilog=_EXAMPLES)
@options.model
@options.task
@click.option(
    "--batch",
    type=Counts(),
    help="Requests in a step, with commas between.  [default: 1, 2, 4, … until it does not fit]",
)
@click.option("--pp", type=Count(), help="Pipeline stages.  [default: every number that divides the GPUs]")
@click.option(
    "--search",
    default="egraph",
    show_default=True,
    type=Known("search", lambda: ("egraph", "grid")),
    metavar="egraph|grid",
    help="Equality saturation and extraction, or the paper's heuristic sweep.",
)
@options.overlap("perfect", "none", text="Computation and communication hide each other as far as they can, or never.")
@options.assumptions
@click.option(
    "--disable-rule",
    "disabled",
    multiple=True,
    type=Known("rule", rule_names),
    metavar="NAME",
    help="Leave a rewrite rule out; may be repeated. `rooflang rules` lists them.",
)
@click.option("--time-limit", type=Seconds(), help="Seconds after which the best so far is returned.  [default: none]")
@options.json_file
@click.option("--quiet", "-q", is_flag=True, help="Print the frontier only: no plans, no counts, no progress.")
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    hardware: str,
    gpus: int,
    stage: str,
    context: int | None,
    batch: tuple[int, ...] | None,
    pp: int | None,
    search: Search,
    overlap: Overlap,
    assumptions: str,
    disabled: tuple[str, ...],
    time_limit: float | None,
    target: JsonTarget | None,
    quiet: bool,
) -> None:
    """Find the layouts of MODEL that no other beats in both tokens/s per GPU and tokens/s per user.

    MODEL is a registered name (`rooflang models`), a config.json, or a compute graph in a file that ends in .rl.
    """
    tokens = options.check_workload(ctx, model, context)
    from rooflang.report.frontier import show_frontier, show_result
    from rooflang.search.api import optimize
    from rooflang.search.progress import Progress

    limit_s = float("inf") if time_limit is None else time_limit
    progress = Progress(limit_s=limit_s, sink=_silent if quiet else None)
    try:
        result = optimize(
            model,
            hardware=hardware,
            gpus=gpus,
            stage=stage,
            context=tokens,
            batch=batch,
            pp=pp,
            search=search,
            overlap=overlap,
            assumptions=assumptions,
            disable_rules=disabled,
            progress=progress,
        )
    finally:
        progress.done()
    if target is not None:
        target.write(result.to_json())
    if target is None or target.path is not None:
        click.echo(show_frontier(result.frontier) if quiet else show_result(result, options.spell(ctx)))
    if result.stopped_by == "interrupted":  # what was found before Ctrl-C is told all the same
        ctx.exit(INTERRUPTED)


def _silent(message: str) -> None:
    """Progress that nobody sees."""
