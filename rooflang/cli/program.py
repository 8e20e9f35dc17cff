"""The program: subcommands that are imported when they are called, and errors as text with an exit code."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import Any

import click

from rooflang.errors import RooflangError, UnknownNameError

#: What shells report for a program that Ctrl-C ended.
INTERRUPTED = 130


class Group(click.Group):
    """A group that answers an unknown subcommand with the nearest names."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            raise UnknownNameError("command", args[0], known, where=ctx.command_path)
        return super().resolve_command(ctx, args)


class Program(Group):
    """The outermost group. Its subcommands are listed by name and summary, and imported on demand.

    `lazy` maps a name to (module, summary); the module calls its command `command`. A `RooflangError` is shown
    without a traceback and gives its exit code; any other exception is a bug and passes through.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        found: click.Command = importlib.import_module(self.lazy[cmd_name][0]).command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.lazy.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except RooflangError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning is about what the user gave, and not about a line of this program."""
    click.echo(f"Warning: {message}", err=True)
