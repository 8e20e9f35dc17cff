"""From a sweep's file to jobs: the product of its lists, and the key of every case."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from rooflang import __version__
from rooflang.assumptions import Assumptions, profile
from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.hw import Cluster, load_platform
from rooflang.ir.graph import Graph
from rooflang.models import Model, load
from rooflang.search.effort import Effort
from rooflang.search.goal import Goal
from rooflang.search.inputs import digest
from rooflang.search.method import Method
from rooflang.search.sizes import clusters
from rooflang.sweep.job import Case, Job
from rooflang.sweep.spec import ClusterSpec, ObjectiveSpec, SearchSpec, Spec, amount_of_bytes, count, seconds

_STAGES = ("decode", "prefill")


@dataclass(frozen=True, kw_only=True)
class _Named:
    """A model under the name that the file has for it, with the hash of its content."""

    name: str
    record: Model | Graph
    content: str


@dataclass(frozen=True, kw_only=True)
class _Size:
    """Clusters that one search looks at, the largest last."""

    hardware: str
    clusters: tuple[Cluster, ...]
    max_gpus: int | None
    gpu_hour_usd: float | None


def jobs(spec: Spec, folder: Path) -> tuple[Job, ...]:
    """All searches of a sweep, in the order of its lists, each once; paths are relative to `folder`.

    Raises a `RooflangError` for a name, a file or a value that cannot be used, before anything is computed, and
    `ValueRangeError` where no case is left.
    """
    for stage in spec.stages:
        if stage not in _STAGES:
            raise UnknownNameError("stage", stage, _STAGES, where="stages")
    taken = [_assumptions(name, spec.assume) for name in spec.assumptions]
    models = [_model(name, folder) for name in spec.models]
    sizes = [size for cluster in spec.clusters for size in _sizes(cluster, folder)]
    method, limits = _method(spec.search), _limits(spec.search)
    found: dict[tuple[str, ...], Job] = {}
    for model, size, assumptions in product(models, sizes, taken):
        for stage, context in _workloads(model, spec):
            job = _job(model, size, assumptions, stage, context, method, limits, spec.objectives)
            if job.cases:
                found.setdefault(tuple(case.key for case in job.cases), job)
    if not found:
        raise ValueRangeError("no case is left", where="objectives", expected="constraints that fit the stages")
    return tuple(found.values())


def _assumptions(name: str, changes: Mapping[str, Any]) -> Assumptions:
    known = profile(name)
    fields = asdict(known)
    for key in changes:
        if key not in fields or key == "name":
            raise UnknownNameError("assumption", key, fields.keys() - {"name"}, where="assume")
    try:
        return msgspec.convert({**fields, **changes}, Assumptions)
    except msgspec.ValidationError as error:
        raise ValueRangeError(str(error).replace("$.", ""), where="assume") from error


def _changed(assumptions: Assumptions) -> dict[str, Any]:
    """What differs from the profile of that name."""
    own = assumptions.differs_from(profile(assumptions.name))
    return {"assume": {name: value for name, (value, _) in sorted(own.items())}} if own else {}


def _workloads(model: _Named, spec: Spec) -> Iterator[tuple[str, int]]:
    if isinstance(model.record, Graph):
        yield ("prefill" if "seq" in model.record.sizes else "decode"), 0
        return
    if not spec.contexts:
        raise ValueRangeError(f"{model.name} needs a context", where="contexts", expected='such as ["64k"]')
    for stage, context in product(spec.stages, spec.contexts):
        yield stage, count(context, "contexts")


def _model(name: str, folder: Path) -> _Named:
    if name.endswith(".rl"):
        from rooflang.ir.text import read

        graph = read(folder / name)
        return _Named(name=name, record=graph, content=graph.fingerprint)
    model = load(folder / name if name.endswith(".json") else name)
    config = hashlib.sha256(msgspec.json.encode(model.config, order="sorted")).hexdigest()
    return _Named(name=model.name, record=model, content=config)


def _sizes(spec: ClusterSpec, folder: Path) -> Iterator[_Size]:
    own_file = spec.hardware.endswith(".toml")
    platform = load_platform(folder / spec.hardware if own_file else spec.hardware)
    price = None if spec.gpu_hour_usd is None else float(spec.gpu_hour_usd)
    if bool(spec.gpus) == (spec.max_gpus is not None):
        raise ValueRangeError(
            "numbers of GPUs and the most of them" if spec.gpus else "no number of GPUs",
            where=f"clusters: {spec.hardware}",
            expected="gpus = [8, 16], or max_gpus = 64",
        )
    for text in spec.gpus:
        cluster = Cluster.of(platform, count(text, "clusters: gpus"))
        yield _Size(hardware=platform.name, clusters=(cluster,), max_gpus=None, gpu_hour_usd=price)
    if spec.max_gpus is not None:
        most = count(spec.max_gpus, "clusters: max_gpus")
        yield _Size(hardware=platform.name, clusters=clusters(platform, most), max_gpus=most, gpu_hour_usd=price)


def _method(spec: SearchSpec) -> Method:
    usual = Effort()
    return Method(
        search=spec.search,
        overlap=spec.overlap,
        disabled=frozenset(spec.disable_rules),
        batch=tuple(count(each, "search: batch") for each in spec.batch) or None,
        pp=spec.pp,
        fix=tuple(spec.fix),
        effort=Effort(
            depth=spec.effort,
            gap=usual.gap if spec.gap is None else spec.gap,
            nodes=usual.nodes if spec.node_limit is None else count(spec.node_limit, "search: node_limit"),
            seed=spec.seed,
        ),
    )


def _limits(spec: SearchSpec) -> Mapping[str, float]:
    found: dict[str, float] = {}
    if spec.time_limit is not None:
        found["limit_s"] = seconds(spec.time_limit, "search: time_limit")
    if spec.memory_limit is not None:
        found["limit_bytes"] = amount_of_bytes(spec.memory_limit, "search: memory_limit")
    for name, value in found.items():
        if not value > 0:
            raise ValueRangeError(f"{value} is not possible", where=f"search: {name}", expected="above 0")
    return found


def _job(
    model: _Named,
    size: _Size,
    assumptions: Assumptions,
    stage: str,
    context: int,
    method: Method,
    limits: Mapping[str, float],
    objectives: Sequence[ObjectiveSpec],
) -> Job:
    gpus = size.clusters[-1].gpus if size.max_gpus is None else None
    asked: dict[str, Any] = {
        "model": model.name,
        "hardware": size.hardware,
        "gpus": gpus,
        "max_gpus": size.max_gpus,
        "stage": stage,
        "context": context,
        "assumptions": assumptions.name,
        **_changed(assumptions),
        **method.inputs(),
        **limits,
    }
    content = {"model_content": model.content, "clusters": [cluster.fingerprint() for cluster in size.clusters]}
    cases = []
    for goal in (_goal(objective, size) for objective in objectives if _applies(objective, stage)):
        told = {**asked, "objective": goal.objective, **goal.inputs(), "version": __version__}
        cases.append(Case(key=digest({**told, **content}), asked=told, goal=goal))
    return Job(
        model=model.record,
        clusters=size.clusters,
        max_gpus=size.max_gpus,
        stage=stage,
        context=context,
        assumptions=assumptions,
        method=method,
        limit_s=limits.get("limit_s", float("inf")),
        limit_bytes=limits.get("limit_bytes", float("inf")),
        cases=tuple({case.key: case for case in cases}.values()),
    )


def _applies(spec: ObjectiveSpec, stage: str) -> bool:
    return not (spec.max_ttft is not None and stage != "prefill") and not (
        spec.max_tpot is not None and stage != "decode"
    )


def _goal(spec: ObjectiveSpec, size: _Size) -> Goal:
    return Goal(
        objective=spec.objective,
        min_user=None if spec.min_user is None else float(spec.min_user),
        max_ttft_s=None if spec.max_ttft is None else seconds(spec.max_ttft, "objectives: max_ttft"),
        max_tpot_s=None if spec.max_tpot is None else seconds(spec.max_tpot, "objectives: max_tpot"),
        gpu_hour_usd=size.gpu_hour_usd,
    )
