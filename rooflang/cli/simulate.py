"""`rooflang simulate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget
from rooflang.cli.types import Count, Layers

if TYPE_CHECKING:
    from rooflang.sim.result import Overlap

_EXAMPLES = """\b
Examples:
  rooflang simulate deepseek-v4-pro --hardware b300 --gpus 8 --context 64k --batch 512 --dp 8
  rooflang simulate deepseek-v4-pro --hardware b300 --gpus 256 --context 64k --batch 4k --dp 16 --pp 16 \\
      --partition 3,4x14,2 --assumptions paper
"""


@click.command("simulate", epilog=_EXAMPLES)
@options.model
@options.task
@click.option(
    "--batch", type=Count(), help="Requests in a step, a multiple of DP.  [default: 1; for a graph its dim batch]"
)
@click.option(
    "--dp", default=1, show_default=True, type=Count(), help="Data parallelism: ranks that share the requests."
)
@click.option(
    "--cp", default=1, show_default=True, type=Count(), help="Context parallelism: ranks that share each context."
)
@click.option(
    "--pp", default=1, show_default=True, type=Count(), help="Pipeline stages. Experts lie on DP × CP ranks of a stage."
)
@click.option(
    "--partition", type=Layers(), help="Layers of each stage: 3,4,4,2, or 3,4x14,2.  [default: as even as can be]"
)
@options.how
@options.json_file
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    hardware: str,
    gpus: int,
    stage: str,
    context: int | None,
    batch: int | None,
    dp: int,
    cp: int,
    pp: int,
    partition: tuple[int, ...] | None,
    overlap: Overlap,
    assumptions: str,
    target: JsonTarget | None,
) -> None:
    """Simulate one step of MODEL laid out as DP × CP × PP = GPUs.

    MODEL is a registered name (`rooflang models`), a config.json, or a compute graph in a file that ends in .rl.
    """
    tokens = options.check_workload(ctx, model, context)
    from rooflang.hw import Cluster
    from rooflang.report.inputs import point_inputs
    from rooflang.report.point import show_point
    from rooflang.search.api import simulate
    from rooflang.search.point import RESULT_SCHEMA

    subject, cluster = options.load_subject(model), Cluster.of(hardware, gpus)
    point = simulate(
        subject,
        hardware=cluster,
        stage=stage,
        context=tokens,
        batch=batch or options.own_batch(subject),
        dp=dp,
        cp=cp,
        pp=pp,
        partition=partition,
        overlap=overlap,
        assumptions=assumptions,
    )
    inputs = point_inputs(
        point, cluster, model=subject.name, stage=stage, context=tokens, dp=dp, cp=cp, assumptions=assumptions
    )
    if target is not None:
        target.write({"schema": RESULT_SCHEMA, "inputs": inputs, "point": point.to_json()})
    if target is None or target.path is not None:
        click.echo(show_point(point, inputs, options.spell(ctx)))
