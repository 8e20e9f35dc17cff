"""The two doors of the Python API that work on whole steps: `simulate` one configuration, `optimize` over all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from rooflang import __version__
from rooflang.assumptions import Assumptions
from rooflang.errors import CapacityError, RooflangError, UnknownNameError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.place.grid import grid_plan
from rooflang.place.layout import Layout
from rooflang.search.evaluate import evaluate
from rooflang.search.grid import search_grid
from rooflang.search.point import Point, Result, pareto
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import batch_sizes, grid_shapes, pipeline_degrees
from rooflang.sim.result import Overlap

Search = Literal["egraph", "grid"]


def simulate(
    model: str | Path | Model | Graph,
    *,
    hardware: str | Path | Cluster,
    gpus: int = 0,
    stage: str = "decode",
    context: int = 0,
    batch: int = 1,
    dp: int = 1,
    cp: int = 1,
    pp: int = 1,
    partition: Sequence[int] | None = None,
    overlap: Overlap = "perfect",
    assumptions: str | Assumptions = "physical",
) -> Point:
    """Simulate one grid configuration: DP × CP = EP on each of PP stages; `partition` lists the layers per stage.

    Raises `ValueRangeError` when DP × CP × PP is not the GPU count, `PlacementError` when the batch does not divide,
    and `CapacityError`, naming the largest tensors, when it does not fit.
    """
    _known("overlap", overlap, ("perfect", "none"))
    problem = Problem.of(model, hardware=hardware, gpus=gpus, stage=stage, context=context, assumptions=assumptions)
    graph = problem.graph.resized(batch=_positive(batch)) if problem.has_batch else problem.graph
    plan = grid_plan(graph, problem.cluster, dp=dp, cp=cp, pp=pp, partition_layers=partition)
    return evaluate(problem, plan, batch, overlap=overlap)


def simulate_layout(
    layout: Layout, *, overlap: Overlap = "perfect", assumptions: str | Assumptions = "physical"
) -> Point:
    """Simulate a plan written by hand. Raises `CapacityError` if it does not fit, `PlacementError` if it cannot
    connect."""
    _known("overlap", overlap, ("perfect", "none"))
    problem = Problem.of(layout.graph, hardware=layout.cluster, assumptions=assumptions)
    return evaluate(problem, layout.plan(), layout.graph.sizes.get("batch", 1), overlap=overlap)


def optimize(
    model: str | Path | Model | Graph,
    *,
    hardware: str | Path | Cluster,
    gpus: int = 0,
    stage: str = "decode",
    context: int = 0,
    batch: Sequence[int] | None = None,
    pp: int | None = None,
    search: Search = "egraph",
    overlap: Overlap = "perfect",
    assumptions: str | Assumptions = "physical",
    disable_rules: Collection[str] = (),
    time_limit_s: float = float("inf"),
    progress: Progress | None = None,
) -> Result:
    """The Pareto frontier of throughput per GPU and interactivity, with a plan, a bound and a certificate for every
    point.

    `search="egraph"` saturates the block kinds, extracts and simulates; `search="grid"` sweeps the RoofLang paper's
    heuristic. On a time limit the best points so far are returned and `stopped_by` says so. Raises `CapacityError`
    when nothing fits at any batch.
    """
    _known("search", search, ("egraph", "grid"))
    _known("overlap", overlap, ("perfect", "none"))
    watch = progress or Progress(limit_s=time_limit_s)
    problem = Problem.of(model, hardware=hardware, gpus=gpus, stage=stage, context=context, assumptions=assumptions)
    batches = batch_sizes(problem, batch)
    degrees = pipeline_degrees(problem, pp)
    if search == "grid":
        points, evaluated = search_grid(problem, degrees, batches, overlap, watch)
        stopped_by = "complete"
    else:
        from rooflang.search.egraph import search_egraph

        points, evaluated, stopped_by = search_egraph(
            problem, degrees, batches, overlap, frozenset(disable_rules), watch
        )
    watch.done()
    if not points:
        raise _nothing_fits(problem, search, degrees, batches, overlap)
    return Result(
        inputs=_inputs(problem, search, batch, pp, overlap, disable_rules),
        frontier=pareto(points),
        points=tuple(points),
        evaluated=evaluated,
        stopped_by=stopped_by,
        seconds=watch.elapsed_s,
    )


def _positive(batch: int) -> int:
    if batch < 1:
        raise ValueRangeError(f"batch {batch}", where="--batch", expected="at least 1")
    return batch


def _known(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UnknownNameError(what, value, known, where=f"--{what}")


def _inputs(
    problem: Problem,
    search: str,
    batch: Sequence[int] | None,
    pp: int | None,
    overlap: str,
    disabled: Collection[str],
) -> dict[str, Any]:
    """Everything that the result depends on, and the hash of it."""
    inputs: dict[str, Any] = {
        "model": problem.name,
        "graph": problem.graph.fingerprint,
        "hardware": problem.cluster.platform.name,
        "cluster": problem.cluster.fingerprint(),
        "gpus": problem.cluster.gpus,
        "stage": problem.stage,
        "context": problem.context,
        "batch": list(batch) if batch else None,
        "pp": pp,
        "search": search,
        "overlap": overlap,
        "assumptions": problem.assumptions.name,
        "disabled_rules": sorted(disabled),
        "version": __version__,
    }
    inputs["hash"] = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]
    return inputs


def _nothing_fits(
    problem: Problem, search: str, degrees: Sequence[int], batches: Sequence[int], overlap: Overlap
) -> RooflangError:
    """Why no configuration is feasible: the smallest overflow of the grid's plans at the smallest batch that
    divides."""
    closest: CapacityError | None = None
    for dp, cp, pp in grid_shapes(problem, degrees):
        quantum = dp * cp if problem.stage == "decode" else dp
        candidates = [b for b in batches if b % quantum == 0]
        if not candidates:
            continue
        try:
            plan = grid_plan(problem.graph.resized(batch=quantum), problem.cluster, dp=dp, cp=cp, pp=pp)
            evaluate(problem, plan, candidates[0], overlap=overlap)
        except CapacityError as error:
            closest = closest or error
        except RooflangError:
            continue
    if closest is not None:
        return CapacityError(
            f"{problem.name} fits at no batch size tried; the nearest: {closest.what}",
            where=f"{problem.cluster.gpus} × {problem.cluster.platform.name}",
            expected=closest.expected,
            hint="use more GPUs, devices with more memory, or a shorter context",
        )
    return ValueRangeError(
        "no configuration divides the batch sizes asked for",
        where="--batch",
        expected="a multiple of the data-parallel degree, or leave --batch out",
    )
