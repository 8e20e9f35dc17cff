"""`rooflang plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rooflang.cli import html as pages
from rooflang.cli import options
from rooflang.cli.assume import assumed
from rooflang.cli.options import apply
from rooflang.cli.output import JsonTarget, tell
from rooflang.cli.program import INTERRUPTED
from rooflang.cli.types import Amount, Count, Known, PerSecond, Seconds, hardware_names

_EXAMPLES = """\b
Examples:
  rooflang plan deepseek-v3 --hardware h200 --gpus 8 --isl 4k --osl 1k --ttft 2s --tpot 30ms
  rooflang plan llama-3.3-70b --hardware h100 --gpus 16 --isl 8k --osl 512 --mode disaggregated
  rooflang plan config.json --hardware b200 --gpus 32 --isl 4k --osl 1k --rate 20/s --gpu-hour-usd 3
  rooflang plan glm-5.3 --hardware h200 --gpus 16 --prefill-hardware b300 --prefill-gpus 8 --isl 32k --osl 1k
"""

_DEMAND = apply(
    click.option("--isl", type=Count(), required=True, help="Tokens of a prompt."),
    click.option("--osl", type=Count(), required=True, help="Tokens of an answer."),
    click.option("--ttft", "ttft_s", type=Seconds(), help="Seconds to the first token, at most: 2s, 300ms."),
    click.option("--tpot", "tpot_s", type=Seconds(), help="Seconds for each further token, at most."),
    click.option(
        "--rate",
        "rate_per_s",
        type=PerSecond(),
        help="Requests a second, at least: then the fewest GPUs are looked for. [default: the most that the GPUs give]",
    ),
    click.option("--gpu-hour-usd", type=Amount(), help="Price of a GPU's hour: also tell dollars per million tokens."),
)

_SHAPE = apply(
    click.option(
        "--mode",
        default="both",
        show_default=True,
        type=Known("mode", lambda: ("both", "aggregated", "disaggregated")),
        metavar="both|aggregated|disaggregated",
        help="Prompts and tokens on the same GPUs, or each on GPUs of their own.",
    ),
    click.option(
        "--prefill-hardware",
        type=Known("hardware", hardware_names, suffix=".toml"),
        metavar="NAME|FILE.toml",
        help="Another platform for the GPUs that run prompts.",
    ),
    click.option("--prefill-gpus", type=Count(), help="GPUs that run prompts, beside the others."),
    click.option("--time-limit", "time_limit_s", type=Seconds(), help="Seconds after which the best so far is told."),
)


@click.command("plan", epilog=_EXAMPLES)
@options.model
@options.fleet
@_DEMAND
@_SHAPE
@options.searched_overlap
@options.assumptions
@pages.page_option
@options.json_file
@options.quiet
@click.pass_context
def command(
    ctx: click.Context, /, model: str, html: Path | None, target: JsonTarget | None, quiet: bool, **given: Any
) -> None:
    """Plan a service of MODEL: how many of the GPUs run prompts, how many make tokens, with which plans.

    MODEL is a registered name (`rooflang models`) or a config.json. Times are those of a service at its full rate whose
    requests arrive evenly: waiting in a queue is not in them.
    """
    options.check_apart(ctx)
    given["assumptions"] = assumed(given)
    from rooflang.report.service import show_offers, show_service
    from rooflang.search.progress import Progress, silent
    from rooflang.service import plan_service

    progress = Progress(sink=silent if quiet else None)
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        plan = plan_service(model, progress=progress, **chosen)
    finally:
        progress.done()
    tell(target, plan.to_json, lambda: show_offers(plan) if quiet else show_service(plan, options.spell(ctx)))
    if html is not None and not pages.write_service(ctx, html, plan, progress):
        ctx.exit(INTERRUPTED)
