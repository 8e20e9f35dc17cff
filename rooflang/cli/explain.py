"""`rooflang explain`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rooflang.cli import html as pages
from rooflang.cli import options
from rooflang.cli.assume import assumed
from rooflang.cli.output import JsonTarget, replacing
from rooflang.cli.types import Count, Counts, FigureFile, Known, hardware_names
from rooflang.errors import ValueRangeError

if TYPE_CHECKING:
    from rooflang.hw.cluster import Device

_EXAMPLES = """\b
Examples:
  rooflang explain deepseek-v4-pro --context 64k,1m
  rooflang explain kimi-k3 --context 4k,64k,1m --batch 1,16,256,4k --hardware b300 --plot needs.svg
  rooflang explain out.json --point 3 --html report.html
"""

#: Options that say what a step is, which a result says itself; and those that are about results.
_OF_MODELS = ("stage", "context", "batch", "assumptions", "assume")
_OF_RESULTS = ("number", "made_from", "html")


@click.command("explain", epilog=_EXAMPLES)
@options.model
@options.stage
@click.option(
    "--context", type=Counts(), help="Tokens of context of each request: 64k, or 64k,256k,1m. A model needs it."
)
@click.option(
    "--batch", default="1,16,256,4k", show_default=True, type=Counts(), help="Requests that share a step, some sizes."
)
@click.option(
    "--hardware",
    type=Known("hardware", hardware_names, suffix=".toml"),
    metavar="b300|…|FILE.toml",
    help="Also tell the time that one GPU of this platform takes for it, and what bounds it.",
)
@options.assumptions
@click.option(
    "--plot",
    type=FigureFile(),
    metavar="FILE.svg|png|pdf",
    help="Also draw it over batch and context; of a result, its frontier.",
)
@click.option("--point", "number", type=Count(), help="Of a result: which point, counted from 1.  [default: 1]")
@click.option(
    "--model",
    "made_from",
    metavar="MODEL",
    help="Of a result: the config.json or graph file that it is of, if its model is no registered one.",
)
@pages.page_option
@options.json_file
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str,
    stage: str,
    context: tuple[int, ...] | None,
    batch: tuple[int, ...],
    hardware: str | None,
    plot: Path | None,
    number: int | None,
    made_from: str | None,
    html: Path | None,
    target: JsonTarget | None,
    **given: Any,
) -> None:
    """Tell what a step of MODEL needs of any machine: bytes and FLOPs per token, and which part of it needs them.

    Weights are read once for the whole batch, KV cache for each request. MODEL is a registered name or a config.json.
    It is laid out over no cluster: `simulate --explain` tells what a layout waits for. In place of MODEL can stand a
    result that `--json` wrote: then a point of it is told closely, as its page would.
    """
    from rooflang.report.saved import is_result

    if model.endswith(".json") and is_result(Path(model)):
        from rooflang.cli.explain_result import explain_result

        _refuse(ctx, _OF_MODELS, "a result says itself what its step is")
        explain_result(
            *(ctx, Path(model)),
            number=number or 1,
            made_from=made_from,
            hardware=hardware,
            html=html,
            plot=plot,
            target=target,
        )
        return
    _refuse(ctx, _OF_RESULTS, f"it is about a result, and {model!r} is none that --json wrote")
    if context is None:
        raise click.UsageError("Missing option '--context', which a model needs.", ctx)
    from rooflang.report.explained import draw_needs, needs_json, show_needs
    from rooflang.report.needs import model_needs

    if model.endswith(".rl"):
        raise ValueRangeError(
            "a graph file has one step and no context", where="MODEL", expected="a registered name or a config.json"
        )
    taken = assumed(given)
    profile = taken if isinstance(taken, str) else f"changed {taken.name}"
    device = None if hardware is None else _device(hardware)
    contexts, batches = sorted(set(context)), sorted(set(batch))
    needs = model_needs(model, stage=stage, contexts=contexts, batches=batches, assumptions=taken)
    if plot is not None:
        with replacing(plot, where="--plot") as path:
            draw_needs(needs, f"{Path(model).name}, {stage}, {profile} assumptions", path, device=device)
    if target is not None:
        asked = {"model": model, "stage": stage, "context": contexts, "batch": batches, "hardware": hardware}
        target.write(needs_json(needs, {**asked, "assumptions": profile}))
    if target is None or target.path is not None:
        click.echo(f"{model}, {stage}; {profile} assumptions\n\n{show_needs(needs, device)}")


def _refuse(ctx: click.Context, names: Sequence[str], why: str) -> None:
    """Raise `ValueRangeError` for the first option that was given although it does not apply."""
    for name in names:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = next(param.opts[0] for param in ctx.command.params if param.name == name)
            raise ValueRangeError(why, where=option, expected="the command without this option")


def _device(hardware: str) -> Device:
    """One GPU of a platform."""
    from rooflang.hw import Cluster
    from rooflang.hw.schema import load_platform

    platform = load_platform(hardware)
    fabric = platform.scale_up
    return Cluster.of(platform, fabric.largest if fabric.fixed_size else fabric.multiple_of).device
