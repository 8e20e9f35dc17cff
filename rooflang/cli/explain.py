"""`rooflang explain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflang.cli import options
from rooflang.cli.assume import assumed
from rooflang.cli.output import JsonTarget, replacing, writable
from rooflang.cli.types import Counts, Known, OptionType, hardware_names
from rooflang.errors import ValueRangeError

if TYPE_CHECKING:
    from rooflang.hw.cluster import Device

_EXAMPLES = """\b
Examples:
  rooflang explain deepseek-v4-pro --context 64k,1m
  rooflang explain kimi-k3 --context 4k,64k,1m --batch 1,16,256,4k --hardware b300 --plot needs.svg
"""

#: How a figure may be written.
_FIGURES = (".svg", ".png", ".pdf")


class _FigureFile(OptionType):
    """A file to draw to, checked when it is read."""

    name = "FILE"

    def read(self, text: str, where: str) -> Path:
        if not text.endswith(_FIGURES):
            raise ValueRangeError(f"{text!r} is no name of a figure", where=where, expected="FILE.svg, .png or .pdf")
        return writable(text, where=where)


@click.command("explain", epilog=_EXAMPLES)
@options.model
@click.option(
    "--stage",
    default="decode",
    show_default=True,
    type=Known("stage", lambda: ("decode", "prefill")),
    metavar="decode|prefill",
    help="One token for each request beside a KV cache, or the whole prompt at once.",
)
@click.option("--context", required=True, type=Counts(), help="Tokens of context of each request: 64k, or 64k,256k,1m.")
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
@click.option("--plot", type=_FigureFile(), metavar="FILE.svg|png|pdf", help="Also draw it over batch and context.")
@options.json_file
def command(
    model: str,
    stage: str,
    context: tuple[int, ...],
    batch: tuple[int, ...],
    hardware: str | None,
    plot: Path | None,
    target: JsonTarget | None,
    **given: Any,
) -> None:
    """Tell what a step of MODEL needs of any machine: bytes and FLOPs per token, and which part of it needs them.

    Weights are read once for the whole batch, KV cache for each request. MODEL is a registered name or a config.json.
    It is laid out over no cluster: `simulate --explain` tells what a layout waits for.
    """
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


def _device(hardware: str) -> Device:
    """One GPU of a platform."""
    from rooflang.hw import Cluster
    from rooflang.hw.schema import load_platform

    platform = load_platform(hardware)
    fabric = platform.scale_up
    return Cluster.of(platform, fabric.largest if fabric.fixed_size else fabric.multiple_of).device
