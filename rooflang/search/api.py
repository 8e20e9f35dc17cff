"""The doors of the Python API that work on whole steps: `simulate` one configuration, or `prepare` it for a closer
look; `optimize` over all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from rooflang.assumptions import Assumptions
from rooflang.errors import CapacityError, LimitReached, UnknownNameError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.place.certificate import replay
from rooflang.place.grid import grid_plan
from rooflang.place.layout import Layout
from rooflang.rules import rule
from rooflang.search.evaluate import evaluate
from rooflang.search.grid import search_grid
from rooflang.search.inputs import hashed_inputs
from rooflang.search.point import Found, Point, Result, pareto
from rooflang.search.prepared import Prepared
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import batch_sizes, pipeline_degrees
from rooflang.search.verify import certified
from rooflang.sim.result import Overlap

Search = Literal["egraph", "grid"]

#: Overlap modes whose plans the search can bound; `simulate` knows every mode.
BOUNDED: tuple[Overlap, ...] = ("perfect", "none")


def prepare(
    model: str | Path | Model | Graph,
    *,
    hardware: str | Path | Cluster,
    gpus: int = 0,
    stage: str = "decode",
    context: int = 0,
    batch: int | None = None,
    dp: int = 1,
    cp: int = 1,
    pp: int = 1,
    partition: Sequence[int] | None = None,
    certificate: Mapping[str, Any] | None = None,
    assumptions: str | Assumptions = "physical",
) -> Prepared:
    """One configuration, ready to be simulated, bracketed, explained or traced: of the grid, DP × CP = EP on each of PP
    stages, `partition` lists the layers per stage; or the plan of a point's `certificate`, which is replayed.

    Without `batch` a graph has the batch size that it is written with, a model one request.

    Raises `ValueRangeError` when DP × CP × PP is not the GPU count, `PlacementError` when the batch does not divide or
    the certificate is not one of this graph and cluster.
    """
    problem = Problem.of(model, hardware=hardware, gpus=gpus, stage=stage, context=context, assumptions=assumptions)
    requests = problem.own_batch if batch is None else problem.check_batch(batch)
    if certificate is not None:
        problem = problem.for_script(certificate)
        plan = replay(certificate, problem.blocks, problem.cluster)
    else:
        graph = problem.graph.resized(batch=requests) if problem.has_batch else problem.graph
        plan = grid_plan(graph, problem.cluster, dp=dp, cp=cp, pp=pp, partition_layers=partition)
    return Prepared(problem=problem, plan=plan, batch=requests)


def simulate(
    model: str | Path | Model | Graph,
    *,
    hardware: str | Path | Cluster,
    gpus: int = 0,
    stage: str = "decode",
    context: int = 0,
    batch: int | None = None,
    dp: int = 1,
    cp: int = 1,
    pp: int = 1,
    partition: Sequence[int] | None = None,
    certificate: Mapping[str, Any] | None = None,
    overlap: Overlap = "perfect",
    explicit: bool = False,
    assumptions: str | Assumptions = "physical",
) -> Point:
    """Simulate one configuration, said as in `prepare`. With `explicit` every rank has operators of its own, which
    takes longer and changes nothing.

    Raises as `prepare` does, and `CapacityError`, naming the largest tensors, when it does not fit.
    """
    _known("overlap", overlap, get_args(Overlap))
    prepared = prepare(
        model,
        hardware=hardware,
        gpus=gpus,
        stage=stage,
        context=context,
        batch=batch,
        dp=dp,
        cp=cp,
        pp=pp,
        partition=partition,
        certificate=certificate,
        assumptions=assumptions,
    )
    return prepared.point(overlap=overlap, explicit=explicit)


def simulate_layout(
    layout: Layout, *, overlap: Overlap = "perfect", assumptions: str | Assumptions = "physical"
) -> Point:
    """Simulate a plan written by hand. Raises `CapacityError` if it does not fit, `PlacementError` if it cannot
    connect."""
    _known("overlap", overlap, get_args(Overlap))
    problem = Problem.of(layout.graph, hardware=layout.cluster, assumptions=assumptions)
    return evaluate(problem, layout.plan(), problem.own_batch, overlap=overlap)


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
    _check_rules(search, disable_rules)
    _known("search", search, ("egraph", "grid"))
    _known("overlap", overlap, BOUNDED)
    watch = progress or Progress(limit_s=time_limit_s)
    problem = Problem.of(model, hardware=hardware, gpus=gpus, stage=stage, context=context, assumptions=assumptions)
    batches = batch_sizes(problem, batch)
    degrees = pipeline_degrees(problem, pp)
    if search == "grid":
        found = search_grid(problem, degrees, batches, overlap, watch)
    else:
        from rooflang.search.egraph import search_egraph

        found = search_egraph(problem, degrees, batches, overlap, frozenset(disable_rules), watch)
    watch.done()
    if not found.points:
        _explain_nothing(problem, found, disable_rules)
    return Result(
        inputs=hashed_inputs(
            problem,
            batch=list(batch) if batch else None,
            pp=pp,
            search=search,
            overlap=overlap,
            disabled_rules=sorted(disable_rules),
        ),
        frontier=certified(problem, pareto(found.points)),
        points=found.points,
        evaluated=found.evaluated,
        stopped_by=found.stopped_by,
        seconds=watch.elapsed_s,
    )


def _check_rules(search: str, disabled: Collection[str]) -> None:
    for name in disabled:
        rule(name)  # refuses unknown names
    if disabled and search == "grid":
        raise ValueRangeError("the grid applies no rules, so that none can be disabled", where="--disable-rule")


def _known(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UnknownNameError(what, value, known, where=f"--{what}")


def _explain_nothing(problem: Problem, found: Found, disabled: Collection[str]) -> NoReturn:
    """Raise why a search has no points: it was stopped before the first, or nothing fits, or nothing divides."""
    where = f"{problem.cluster.gpus} × {problem.cluster.platform.name}"
    if found.stopped_by == "interrupted":
        raise KeyboardInterrupt
    if found.stopped_by == "time limit":
        raise LimitReached(
            "the time limit ended the search before its first point", where=where, hint="allow more time"
        )
    if found.nearest is not None:
        raise CapacityError(
            f"{problem.name} fits at no batch size tried; the nearest: {found.nearest.what}",
            needs_bytes=found.nearest.needs_bytes,
            where=where,
            expected=found.nearest.expected,
            hint="use more GPUs, devices with more memory, or a shorter context",
        )
    raise ValueRangeError(
        "no configuration runs at the batch sizes tried",
        where=where,
        expected="batch sizes that divide over the ranks",
        hint="without a rule that was disabled there may be no plan at all" if disabled else "",
    )
