"""`rooflang completion`."""

from __future__ import annotations

import click

_SHELLS = ("bash", "zsh", "fish")

_EXAMPLES = """\b
Once, for every new shell:
  rooflang completion bash >> ~/.bashrc
  rooflang completion zsh >> ~/.zshrc
  rooflang completion fish > ~/.config/fish/completions/rooflang.fish
"""


@click.command("completion", epilog=_EXAMPLES)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, and names of models, platforms and rules."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root()
    click.echo(found(root.command, {}, "rooflang", "_ROOFLANG_COMPLETE").source())
