"""The command line. It imports nothing heavy before a subcommand asks for it."""

from __future__ import annotations

import errno
import io
import sys

import click

from rooflang import __version__
from rooflang.cli.program import Program
from rooflang.cli.settings import VARIABLE, as_defaults, read_settings, settings_file

_EPILOG = """\b
Start with:
  rooflang optimize deepseek-v4-pro --hardware b300 --gpus 8 --stage decode --context 64k
\b
Exit codes:
  0    done
  1    a bug in RoofLang: please report the traceback
  2    an option, a file or a name that cannot be used
  3    it does not fit into memory; the largest tensors are named
  4    a limit ended the work before there was any result
  5    no plan meets the constraints; the nearest is named
  130  interrupted
"""

#: What the system says where there is no room for more output.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@click.group(
    cls=Program,
    lazy={
        "optimize": ("rooflang.cli.optimize", "find the frontier of throughput and interactivity"),
        "simulate": ("rooflang.cli.simulate", "simulate one configuration"),
        "plan": ("rooflang.cli.plan", "plan a service: prefill, decode, batch, cost, for targets of latency"),
        "sweep": ("rooflang.cli.sweep", "search many configurations, on one machine or many"),
        "explain": ("rooflang.cli.explain", "tell what a model needs per token, and which part of it"),
        "agent": ("rooflang.cli.agent", "make a plan one primitive at a time, or replay one"),
        "compare": ("rooflang.cli.compare", "compare agents, scripted or your own, with the search"),
        "models": ("rooflang.cli.models", "list the models, or show one"),
        "hardware": ("rooflang.cli.hardware", "list the platforms, show one, or check a file"),
        "rules": ("rooflang.cli.rules", "list the rewrite rules, or show one"),
        "import": ("rooflang.cli.import_", "make a compute graph of a PyTorch program"),
        "validate": ("rooflang.cli.validate", "compare a graph with an execution trace"),
        "verify": ("rooflang.cli.verify", "check a saved result, or the rewrite rules"),
        "tables": ("rooflang.cli.tables", "recompute the paper's Tables 7 and 8"),
        "reproduce": ("rooflang.cli.reproduce", "recompute the paper's evaluation, as a report"),
        "config": ("rooflang.cli.config", "show the file of your defaults"),
        "completion": ("rooflang.cli.completion", "print a script for the completion of your shell"),
    },
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="rooflang", message="%(prog)s %(version)s")
@click.option("--config", metavar="FILE.toml", envvar=VARIABLE, help="Read defaults of options from this file.")
@click.pass_context
def program(ctx: click.Context, config: str | None) -> None:
    """The best layout of an LLM's inference over a cluster, how fast it can go, and what stops it."""
    path = settings_file(config)
    if path is not None and ctx.invoked_subcommand not in ("config", "completion"):
        assert isinstance(ctx.command, Program)
        ctx.default_map = as_defaults(read_settings(path), ctx.command, ctx.invoked_subcommand, path)


def main() -> None:
    """Run the program on the command line's arguments and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # an arrow that an old terminal cannot show is no reason to stop
            stream.reconfigure(errors="replace")
    try:
        program(prog_name="rooflang")
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        click.echo(f"Error: standard output: {error.strerror}\n  expected: room for what is printed", err=True)
        sys.exit(2)
