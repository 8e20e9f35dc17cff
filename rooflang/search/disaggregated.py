"""Prefill and decode on GPUs of their own: a placement, found by the search that finds all others.

The graph is a prompt and the decode step after it (`rooflang.models.disaggregated`); its first stages run the prompt,
the others decode, and the caches go over the fabric between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooflang.assumptions import Assumptions, profile
from rooflang.errors import ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.blocks import split_blocks
from rooflang.models import Model, load
from rooflang.models.disaggregated import PREFILL, prefill_then_decode
from rooflang.place.grid import balanced
from rooflang.search.api import optimize, prepare
from rooflang.search.point import Point
from rooflang.search.prepared import Prepared
from rooflang.search.progress import Progress
from rooflang.sim.costs import LiftedCosts


@dataclass(frozen=True, kw_only=True)
class Disaggregated:
    """A plan with prefill and decode on GPUs of their own, for `batch` requests at a time.

    Without overlap, `prefill_s` is how long the slowest prefill stage works, `transfer_s` how long it takes to hand all
    caches and the first token to decode, `decode_s` the slowest decode stage's step. `point` is the whole, as
    simulated: its step is that of the slowest stage, hand-over included. `prepared` is the plan for a closer look:
    `prepared.write_trace` shows the hand-over, cache by cache.
    """

    point: Point
    prepared: Prepared
    prefill_stages: int
    prefill_s: float
    transfer_s: float
    decode_s: float

    def ratio(self, output_tokens: int) -> float:
        """How many sets of prefill GPUs keep one set of decode GPUs busy, if each request makes so many tokens."""
        return self.prefill_s / (self.decode_s * output_tokens)

    def ttft_s(self) -> float:
        """Seconds until a prompt's first token: all prefill stages, one after the other."""
        return sum(stage.span_s("none") for stage in self.point.sim.stages[: self.prefill_stages]) - self.transfer_s


def disaggregate(
    model: str | Path | Model,
    *,
    hardware: str | Path | Cluster,
    gpus: int = 0,
    context: int,
    batch: int,
    prefill_stages: int = 1,
    decode_stages: int = 1,
    assumptions: str | Assumptions = "physical",
    progress: Progress | None = None,
    **options: Any,
) -> Disaggregated:
    """Lay prefill of `context` tokens and the decode step after it over disjoint GPUs, as many for every stage; further
    `options` are those of `optimize`.

    Raises `ValueRangeError` for stages that the GPUs do not divide into, and as `optimize` does.
    """
    taken = assumptions if isinstance(assumptions, Assumptions) else profile(assumptions)
    graph = prefill_then_decode(model if isinstance(model, Model) else load(model), context, taken)
    sequence = split_blocks(graph).sequence
    first = sum(label.split(".")[0] == PREFILL for label in sequence)
    for name, count, blocks in (
        ("prefill", prefill_stages, first),
        ("decode", decode_stages, len(sequence) - first),
    ):
        if not 1 <= count <= blocks:
            raise ValueRangeError(f"{count} {name} stages", where="disaggregate", expected=f"1 to {blocks}")
    stages = (*balanced(first, prefill_stages), *balanced(len(sequence) - first, decode_stages))
    cluster = hardware if isinstance(hardware, Cluster) else Cluster.of(hardware, gpus)
    given: Mapping[str, Any] = {"hardware": cluster, "assumptions": taken}
    (point,) = optimize(
        graph,
        **given,
        batch=[batch],
        pp=len(stages),
        fix=["partition=" + ",".join(map(str, stages))],
        progress=progress,
        **options,
    ).frontier
    return _measured(point, prepare(graph, **given, batch=batch, certificate=point.certificate), prefill_stages)


def _measured(point: Point, prepared: Prepared, prefill_stages: int) -> Disaggregated:
    known = LiftedCosts(prepared.cost)
    handed = [op for op in prepared.placed.ops if op.kind == "send" and op.stage == prefill_stages - 1]
    transfer_s = sum(float(known.of(op).exposed_s) for op in handed)
    spans = [stage.span_s("none") for stage in point.sim.stages]
    spans[prefill_stages - 1] -= transfer_s
    return Disaggregated(
        point=point,
        prepared=prepared,
        prefill_stages=prefill_stages,
        prefill_s=max(spans[:prefill_stages]),
        transfer_s=transfer_s,
        decode_s=max(spans[prefill_stages:]),
    )
