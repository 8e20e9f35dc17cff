"""`rooflang agent mcp` and `rooflang agent run`: a session for clients of the Model Context Protocol."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflang.cli import options
from rooflang.cli.assume import assumed
from rooflang.cli.options import apply
from rooflang.cli.output import JsonTarget, replacing, writable
from rooflang.cli.types import Count, Seconds

if TYPE_CHECKING:
    from rooflang.agent.bench import Bench
    from rooflang.agent.session import Session

_MCP_EXAMPLES = """\b
Example, as the command of an MCP client:
  rooflang agent mcp deepseek-v4-pro --hardware b300 --gpus 8 --context 64k --batch 512
"""

_RUN_EXAMPLES = """\b
Example:
  rooflang agent run deepseek-v4-pro --hardware b300 --gpus 8 --context 64k --batch 512 \\
      --budget 200 --run "python my_agent.py"
"""

_BENCH = apply(
    options.model,
    options.task,
    click.option("--batch", type=Count(), help="Requests in a step.  [default: 1; for a graph its dim batch]"),
    options.overlap(
        "perfect", "none", text="Computation and communication hide each other as far as they can, or never."
    ),
    options.assumptions,
    click.option("--budget", type=Count(), help="Simulations of different plans, at most.  [default: any number]"),
    click.option(
        "--journal", type=click.Path(), metavar="FILE", help="Keep the journal in this file, after every change."
    ),
)


@click.command("mcp", epilog=_MCP_EXAMPLES)
@_BENCH
@options.json_file
@click.pass_context
def mcp(ctx: click.Context, /, target: JsonTarget | None, journal: str | None, **given: Any) -> None:
    """Serve one session about MODEL to a client of the Model Context Protocol, on standard input and output.

    The client gets tools for the session and documents about the primitives. It can change the plan, and nothing that
    the plan is judged by. With --json what came of it is written when the client goes: counts, the fastest plan that
    was simulated, its journal.
    """
    from rooflang.agent.server import require_sdk, serve
    from rooflang.agent.stdin import ended_by_signals

    require_sdk()
    bench = _bench(ctx, journal, given)
    marker = None if target is None or target.path is None else target.path.with_suffix(".started")
    if marker is not None:
        marker.touch()
    try:
        with ended_by_signals():
            serve(bench)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what clients send that do not wait
        if target is not None:
            if marker is not None:  # soon: a client that does not wait at all ends this process in a few seconds
                target.write(bench.report(verified=False))
            target.write(bench.report())
        if marker is not None:
            marker.unlink(missing_ok=True)


@click.command("run", epilog=_RUN_EXAMPLES)
@_BENCH
@click.option("--run", "agent", required=True, metavar="CMD", help="The agent: a command that starts MCP servers.")
@click.option("--time-limit", "time_limit_s", type=Seconds(), help="Seconds after which the agent is ended.")
@options.json_file
@click.pass_context
def run(
    ctx: click.Context,
    /,
    agent: str,
    time_limit_s: float | None,
    target: JsonTarget | None,
    journal: str | None,
    **given: Any,
) -> None:
    """Run an agent on a session about MODEL until it ends, and tell what it did.

    CMD finds the path of an MCP configuration, with the server of this session in it, in ROOFLANG_MCP_CONFIG. What it
    writes to its standard error is passed on; a line there that is JSON, such as {"tokens": 12345}, is what it states
    about itself.
    """
    from rooflang.agent.drive import drive
    from rooflang.agent.server import require_sdk
    from rooflang.report.agents import show_run

    require_sdk()
    _bench(ctx, journal, given)  # what cannot be asked is refused here, not in the server's process
    result = drive(agent, [sys.executable, "-m", "rooflang", *_server_words(ctx, journal)], time_limit_s=time_limit_s)
    if target is not None:
        target.write(result)
    if target is None or target.path is not None:
        click.echo(show_run(result))


def _server_words(ctx: click.Context, journal: str | None) -> list[str]:
    """The command line of the server: the options of this one that both know."""
    words = shlex.split(options.spell(ctx, without=("agent", "time_limit_s", "target", "journal")))
    words = ["agent", "mcp", *words[words.index("run") + 1 :]]
    return [*words, *(["--journal", journal] if journal else [])]


def _bench(ctx: click.Context, journal: str | None, given: dict[str, Any]) -> Bench:
    from rooflang.agent.bench import Bench
    from rooflang.agent.session import Session

    model, budget = given.pop("model"), given.pop("budget")
    given["context"] = options.check_workload(ctx, model, given["context"])
    given["assumptions"] = assumed(given)
    path = None if journal is None else writable(journal, where="--journal")
    session = Session.start(model, **given)
    return Bench(session, budget=budget, watch=_keeping(path))


def _keeping(path: Path | None) -> Callable[[Session], None]:
    def keep(session: Session) -> None:
        if path is not None:
            with replacing(path, where="--journal") as partial:
                partial.write_text(session.journal, encoding="utf-8")

    return keep
