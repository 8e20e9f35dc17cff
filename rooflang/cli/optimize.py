"""`rooflang optimize`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflang.cli import emit, options
from rooflang.cli import html as pages
from rooflang.cli.assume import assumed
from rooflang.cli.options import apply
from rooflang.cli.output import JsonTarget, tell
from rooflang.cli.program import INTERRUPTED
from rooflang.cli.types import Amount, Bytes, Count, Counts, Known, Seconds, Seed, Share, rule_names

_EXAMPLES = """\b
Examples:
  rooflang optimize deepseek-v4-pro --hardware b300 --gpus 8 --context 64k
  rooflang optimize deepseek-v4-pro --hardware gb300 --max-gpus 16 --context 64k \\
      --objective cost --gpu-hour-usd 3 --min-user 50 --max-tpot 25ms
  rooflang optimize deepseek-v4-pro --hardware b300 --gpus 256 --context 64k --batch 4k --pp 16 \\
      --fix attention=batch:16 --fix experts=expert:16
  rooflang optimize config.json --hardware gb300 --gpus 64 --stage prefill --context 8k --json out.json
  rooflang optimize graph.rl --hardware h200 --gpus 4 --html report.html
"""

_GOAL = apply(
    click.option(
        "--objective",
        default="frontier",
        show_default=True,
        type=Known("objective", lambda: ("frontier", "throughput", "latency", "cost")),
        metavar="frontier|throughput|latency|cost",
        help="All points that are best at something; or the one of most tok/s/GPU, of most tok/s/user, or of fewest "
        "dollars per token.",
    ),
    click.option("--min-user", type=Amount(), help="Only plans of at least so many tok/s/user."),
    click.option(
        "--max-ttft", "max_ttft_s", type=Seconds(), help="Only plans whose prefill takes at most that: 2s, 300ms."
    ),
    click.option(
        "--max-tpot", "max_tpot_s", type=Seconds(), help="Only plans whose decode takes at most that per output token."
    ),
    click.option("--gpu-hour-usd", type=Amount(), help="Price of a GPU's hour: also tell dollars per million tokens."),
)

_SPACE = apply(
    click.option(
        "--batch",
        type=Counts(),
        help="Requests in a step, with commas between.  [default: 1, 2, 4, … until it does not fit]",
    ),
    click.option("--pp", type=Count(), help="Pipeline stages.  [default: every number that divides the GPUs]"),
    click.option(
        "--fix",
        multiple=True,
        metavar="NAME=VALUE",
        help="Give a part of the plan; may be repeated: experts=expert:16, mesh=2x8, partition=3,4x14,2, or "
        "dp=16,cp=1,ep=16.",
    ),
    click.option(
        "--search",
        default="egraph",
        show_default=True,
        type=Known("search", lambda: ("egraph", "grid")),
        metavar="egraph|grid",
        help="Equality saturation and extraction, or the paper's heuristic sweep.",
    ),
    options.searched_overlap,
    options.assumptions,
    click.option(
        "--disable-rule",
        "disable_rules",
        multiple=True,
        type=Known("rule", rule_names),
        metavar="NAME",
        help="Leave a rewrite rule out; may be repeated. `rooflang rules` lists them.",
    ),
)

_LIMITS = apply(
    click.option(
        "--effort",
        default="full",
        show_default=True,
        type=Known("effort", lambda: ("full", "look")),
        metavar="full|look",
        help="Search to the gap; or only look at all meshes, for the best plans and bounds that a few seconds give.",
    ),
    click.option(
        "--axes",
        type=Count(),
        help="Mesh axes that a search uses at most, 1 to 3; three take many times as long as two.  [default: 2]",
    ),
    click.option(
        "--time-limit",
        "time_limit_s",
        type=Seconds(),
        help="Seconds after which the best so far is returned.  [default: none]",
    ),
    click.option(
        "--memory-limit",
        "memory_limit_bytes",
        type=Bytes(),
        help="Memory of the search, 8GB or so, at which the best so far is returned.  [default: none]",
    ),
    click.option(
        "--node-limit", type=Count(), help="E-nodes and facts at which one saturation ends.  [default: 2,000,000]"
    ),
    click.option("--gap", type=Share(), help="Distance to the bound at which a plan is good enough.  [default: 0.3%]"),
    click.option("--seed", type=Seed(), help="Of the numbers on which plans are evaluated.  [default: 0]"),
)


@click.command("optimize", epilog=_EXAMPLES)
@options.model
@options.task_of_any_size
@_GOAL
@_SPACE
@_LIMITS
@emit.option
@pages.page_option
@pages.plot_option
@options.json_file
@options.quiet
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    context: int | None,
    gpus: int | None,
    max_gpus: int | None,
    target: JsonTarget | None,
    quiet: bool,
    emit_for: str | None,
    html: Path | None,
    plot: Path | None,
    **given: Any,
) -> None:
    """Find the layouts of MODEL that no other beats in both tokens/s per GPU and tokens/s per user, or the best one.

    MODEL is a registered name (`rooflang models`), a config.json, or a compute graph in a file that ends in .rl.
    """
    tokens = options.check_workload(ctx, model, context)
    gpus, max_gpus = options.check_size(ctx, gpus, max_gpus)
    pages.check_libraries(plot)
    emit.check(emit_for, model)
    given["assumptions"] = assumed(given)
    from rooflang.report.frontier import show_result, show_table
    from rooflang.report.stacks import show_nearest
    from rooflang.search.api import optimize
    from rooflang.search.progress import Progress, silent

    progress = Progress(sink=silent if quiet else None)
    chosen = {name: value for name, value in given.items() if value is not None}  # else the defaults of `optimize`
    asked = {"model": model, "context": tokens, **chosen}
    try:
        result = optimize(model, gpus=gpus or 0, max_gpus=max_gpus, context=tokens, progress=progress, **chosen)
        near = emit.nearest(emit_for, result, asked, progress) if emit_for else []
    finally:
        progress.done()
    stack = {"nearest": [one.to_json() for one in near]} if emit_for else {}
    parts = [show_table(result) if quiet else show_result(result, options.spell(ctx))]
    parts += [show_nearest(near)] if near else []
    tell(target, lambda: {**result.to_json(), **stack}, lambda: "\n\n".join(parts))
    if plot is not None:
        pages.plot(plot, result.inputs, result.to_json()["frontier"])
    whole = html is None or pages.write_result(ctx, html, result, asked, progress)
    if not whole or result.stopped_by == "interrupted":  # what was found before Ctrl-C is told all the same
        ctx.exit(INTERRUPTED)
