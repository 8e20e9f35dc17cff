"""The doors of the Python API that work on whole steps: `simulate` one configuration, or `prepare` it for a closer
look; `optimize` over all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from rooflang.assumptions import Assumptions
from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.hw import Cluster, load_platform
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.place.certificate import replay
from rooflang.place.grid import grid_plan
from rooflang.place.layout import Layout
from rooflang.search.effort import EFFORT, GAP, Depth, Effort
from rooflang.search.evaluate import evaluate
from rooflang.search.fix import MAX_AXES
from rooflang.search.goal import Goal, Objective
from rooflang.search.method import Method, Search, Searched
from rooflang.search.outcome import outcome
from rooflang.search.point import Point, Result
from rooflang.search.prepared import Prepared
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import clusters
from rooflang.sim.result import Overlap


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
    max_gpus: int | None = None,
    stage: str = "decode",
    context: int = 0,
    batch: Sequence[int] | None = None,
    pp: int | None = None,
    fix: Collection[str] = (),
    search: Search = "egraph",
    overlap: Overlap = "perfect",
    assumptions: str | Assumptions = "physical",
    disable_rules: Collection[str] = (),
    objective: Objective = "frontier",
    min_user: float | None = None,
    max_ttft_s: float | None = None,
    max_tpot_s: float | None = None,
    gpu_hour_usd: float | None = None,
    effort: Depth = "full",
    axes: int = MAX_AXES,
    gap: float = GAP,
    node_limit: int | None = None,
    memory_limit_bytes: float = float("inf"),
    time_limit_s: float = float("inf"),
    seed: int = 0,
    jobs: int = 0,
    progress: Progress | None = None,
) -> Result:
    """The Pareto frontier of throughput per GPU and interactivity, or with another `objective` the one point that is
    best at it (`rooflang.search.goal.Goal`), with a plan, a bound and a certificate for every point.

    `search="egraph"` saturates the block kinds, extracts and simulates; `search="grid"` sweeps the RoofLang paper's
    heuristic. `max_gpus` stands in place of `gpus`: every number up to it that the platform allows. `fix` gives parts
    of the plan (`rooflang.search.fix`). Constraints are never relaxed. At a limit the best points so far come back and
    `stopped_by` says so: `time_limit_s`, `memory_limit_bytes` of this process, `node_limit` of one saturation, those of
    `progress`, Ctrl-C. An extraction ends at the relative `gap`; with `effort="look"` there is none, and for each batch
    size the best plan comes back that a first look at all meshes finds, the grid's among them. Meshes have at most so
    many `axes`, 1 to 3. `jobs` processes search (0: as many as it pays for).

    Raises `CapacityError` when nothing fits, `UnreachableError` that names the nearest point when nothing meets the
    constraints, `LimitReached` when a limit came before the first point, `ValueRangeError` and `UnknownNameError`.
    """
    goal = Goal(
        objective=objective, min_user=min_user, max_ttft_s=max_ttft_s, max_tpot_s=max_tpot_s, gpu_hour_usd=gpu_hour_usd
    )
    nodes = EFFORT.nodes if node_limit is None else node_limit
    work = Effort(depth=effort, axes=axes, gap=gap, nodes=nodes, seed=seed, jobs=jobs)
    disabled, fixed = frozenset(_texts(disable_rules, "--disable-rule")), _texts(fix, "--fix")
    asked = _several(batch)
    method = Method(search=search, overlap=overlap, disabled=disabled, batch=asked, pp=pp, fix=fixed, effort=work)
    watch = (progress or Progress()).within(limit_s=time_limit_s, limit_bytes=memory_limit_bytes)
    *fewer, most = _clusters(hardware, gpus, max_gpus)
    problem = Problem.of(model, hardware=most, stage=stage, context=context, assumptions=assumptions)
    goal.check_stage(problem.stage)
    searched = Searched.all(method, [*(replace(problem, cluster=cluster) for cluster in fewer), problem], watch)
    result = outcome(goal, method, problem, searched, watch, max_gpus=max_gpus)
    watch.done()
    return result


def _clusters(hardware: str | Path | Cluster, gpus: int, most: int | None) -> tuple[Cluster, ...]:
    """The clusters to search, the largest last."""
    if most is None:
        return (hardware if isinstance(hardware, Cluster) else Cluster.of(hardware, gpus),)
    if gpus:
        raise ValueRangeError("both a number of GPUs and the most of them", where="--gpus, --max-gpus", expected="one")
    return clusters(hardware.platform if isinstance(hardware, Cluster) else load_platform(hardware), most)


def _several(batch: Sequence[int] | None) -> tuple[int, ...] | None:
    """The batch sizes asked for. Raises `ValueRangeError` for what is no sequence of them."""
    if batch is not None and (isinstance(batch, str) or not isinstance(batch, Iterable)):
        raise ValueRangeError(f"{batch!r} is not possible", where="--batch", expected="batch sizes, such as [8, 64]")
    return tuple(batch or ()) or None


def _texts(given: str | Collection[str], where: str) -> tuple[str, ...]:
    """Several texts, or a single one. Raises `ValueRangeError` for what is none."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise ValueRangeError(f"{text!r} is not possible", where=where, expected="text")
    return texts


def _known(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UnknownNameError(what, value, known, where=f"--{what}")
