"""`rooflang compare`."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

from rooflang.cli import options
from rooflang.cli.assume import assumed
from rooflang.cli.output import JsonTarget, tell
from rooflang.cli.program import INTERRUPTED
from rooflang.cli.types import Count, Seconds, Seed, Share

_EXAMPLES = """\b
Examples:
  rooflang compare deepseek-v4-pro --hardware b300 --gpus 8 --context 64k --batch 512 \\
      --agents greedy,beam --budget 100 --json compared.json
  rooflang compare deepseek-v4-pro --hardware b300 --gpus 8 --context 64k --batch 512 \\
      --journal mine.journal --run "python my_agent.py"
"""

#: Parameters that a server of the same task does not know.
_OWN = ("agents", "budget", "seed", "gap", "journals", "agent", "agent_limit_s", "time_limit_s", "target")


@click.command("compare", epilog=_EXAMPLES)
@options.model
@options.task
@click.option("--batch", type=Count(), help="Requests in a step.  [default: 1; for a graph its dim batch]")
@options.searched_overlap
@options.assumptions
@click.option(
    "--agents",
    default="greedy,beam",
    show_default=True,
    metavar="NAME,NAME,…",
    help="Scripted agents: random, greedy, beam, annealing; none by an empty list.",
)
@click.option(
    "--budget", default=100, show_default=True, type=Count(), help="Simulations of a scripted agent, or of --run."
)
@click.option("--seed", default=0, show_default=True, type=Seed(), help="Of the scripted agents.")
@click.option(
    "--journal",
    "journals",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="A journal that another agent left; may be repeated.",
)
@click.option("--run", "agent", metavar="CMD", help="An agent: a command that starts MCP servers.")
@click.option("--agent-time-limit", "agent_limit_s", type=Seconds(), help="Seconds after which that one is ended.")
@click.option("--gap", type=Share(), help="Distance to the bound at which the search stops.  [default: 0.3%]")
@click.option(
    "--time-limit",
    "time_limit_s",
    type=Seconds(),
    help="Seconds after which what is there is told.  [default: none]",
)
@options.json_file
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    context: int | None,
    agents: str,
    agent: str | None,
    agent_limit_s: float | None,
    time_limit_s: float | None,
    gap: float | None,
    target: JsonTarget | None,
    **given: Any,
) -> None:
    """Compare agents with the search, on one step of MODEL: the grid, scripted agents, journals, an agent of your own.

    All start from the initial graph and are judged by the same simulation. For each the best plan is told, how far it
    is above the lower bound, and whether the search could have found it: whether all its kernels and collectives are in
    the e-graphs. CMD finds the path of an MCP configuration in ROOFLANG_MCP_CONFIG.
    """
    given["context"] = options.check_workload(ctx, model, context)
    given["assumptions"] = assumed(given)
    from rooflang.agent.compare import compare
    from rooflang.report.compare import show_comparison
    from rooflang.search.effort import GAP
    from rooflang.search.progress import Progress

    if agent is not None:
        from rooflang.agent.server import require_sdk

        require_sdk()
    progress = Progress().within(limit_s=float("inf") if time_limit_s is None else time_limit_s)
    try:
        found = compare(
            model,
            agents=[name.strip() for name in agents.split(",") if name.strip()],
            command=agent or "",
            command_limit_s=agent_limit_s,
            server=_server(ctx, given["budget"]),
            gap=GAP if gap is None else gap,
            progress=progress,
            **given,
        )
    finally:
        progress.done()
    told = found.to_json()
    tell(target, lambda: told, lambda: show_comparison(told, options.spell(ctx)))
    if found.stopped_by == "interrupted":  # those that were done before Ctrl-C are told all the same
        ctx.exit(INTERRUPTED)


def _server(ctx: click.Context, budget: int) -> list[str]:
    """The command line of an MCP server of the same task."""
    words = shlex.split(options.spell(ctx, without=_OWN))
    task = words[words.index("compare") + 1 :]
    return [sys.executable, "-m", "rooflang", "agent", "mcp", *task, "--budget", str(budget)]
