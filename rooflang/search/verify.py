"""Certificates of results: attached when a search ends, and checked again, later and elsewhere, from the file alone.

Checking trusts nothing in the file. The graph and the cluster are built anew from the names of the model and of the
hardware, and have to have the fingerprints that the certificates were made for; each plan is rebuilt from its script,
step by step, evaluated beside the unsharded graph, and simulated; every number that the file states has to come out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from rooflang.errors import PlacementError, RooflangError, ValueRangeError
from rooflang.hw import Cluster
from rooflang.ir.graph import Graph
from rooflang.models import Model
from rooflang.place.certificate import replay
from rooflang.place.script import first_difference
from rooflang.search.apart import check_apart
from rooflang.search.inputs import digest, named_in, stated_assumptions
from rooflang.search.point import PRICE, RESULT_SCHEMA, Point, usd_per_million_tokens
from rooflang.search.prepared import Prepared
from rooflang.search.problem import Problem
from rooflang.search.validate import Validation, evaluated, validated
from rooflang.sim.result import Overlap

#: Numbers of two runs agree to so many parts: JSON keeps every digit, other versions of NumPy may round sums otherwise.
TOLERANCE = 1e-9

VERIFIED_SCHEMA = "rooflang.verified/1"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPoint:
    """One point that stood its trial: how many primitives its script has, and what it was evaluated on."""

    batch: int
    plan: str
    steps: int
    evaluated: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A file whose points all stood their trial."""

    path: str
    model: str
    points: tuple[VerifiedPoint, ...]

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON data, schema `rooflang.verified/1`."""
        points = [asdict(point) for point in self.points]
        return {
            "schema": VERIFIED_SCHEMA,
            "verdict": "accepted",
            "file": self.path,
            "model": self.model,
            "points": points,
        }


def certified(problem: Problem, points: Sequence[Point], *, seed: int = 0) -> tuple[Point, ...]:
    """The points, their certificates saying on what their plans were evaluated.

    Raises `PlacementError` for a plan that computes something else than the graph.
    """
    out = []
    laid = problem
    for point in points:
        laid = laid.for_script(point.certificate)  # points that follow each other are often of one graph
        check_apart(laid, seed=seed)
        found = validated(point.certificate, laid.blocks, laid.cluster, seed=seed)
        out.append(replace(point, certificate={**point.certificate, "evaluated": found.to_json()}))
    return tuple(out)


def verify_plan(
    path: str | Path,
    *,
    model: str | Path | Model | Graph | None = None,
    hardware: str | Path | Cluster | None = None,
    seed: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> Verified:
    """Check a saved result (`rooflang.result/1`, of `optimize` or `simulate`) without trusting anything in it.

    `model` and `hardware` are needed where the file names what is not registered: a graph file, a config.json, a
    hardware file. `seed` makes the numbers on which plans are evaluated, other ones than those of the search.

    Raises `PlacementError` that names the first step that does not apply, the first tensor that differs, or the first
    number that does not come out; `ValueRangeError` for a file that is no result.
    """
    data = _read(Path(path))
    inputs = _field(data, "inputs", dict, "result")
    problem = stated_problem(inputs, model, hardware)
    if inputs.get("hash") != digest({key: value for key, value in inputs.items() if key != "hash"}):
        raise PlacementError("the inputs have another hash than the one stated", where="inputs")
    overlap = _field(inputs, "overlap", str, "inputs")
    out = []
    points = list(_points(data))
    if not points:
        raise PlacementError("there is no point in it", where="frontier", expected="one or more")
    for name, point in points:
        say(f"checking {name}")
        try:
            out.append(_check(problem, point, cast(Overlap, overlap), seed, inputs.get("gpu_hour_usd")))
        except RooflangError as error:
            error.where = f"{name}: {error.where}" if error.where else name
            raise
    return Verified(path=str(path), model=problem.name, points=tuple(out))


def _read(path: Path) -> Json:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ValueRangeError(
            f"cannot read {str(path)!r}: {error}", expected=f"a file of schema {RESULT_SCHEMA}"
        ) from error
    if not isinstance(data, dict) or data.get("schema") != RESULT_SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise ValueRangeError(f"the schema is {found!r}", where=str(path), expected=RESULT_SCHEMA)
    return data


def _field(data: Json, name: str, kind: type, where: str) -> Any:
    value = data.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueRangeError(f"{name} is {value!r}", where=where, expected=kind.__name__)
    return value


def _points(data: Json) -> Iterator[tuple[str, Json]]:
    """Points by their place in the file."""
    if "point" in data:
        yield "point", _field(data, "point", dict, "result")
        return
    for index, point in enumerate(_field(data, "frontier", list, "result")):
        if not isinstance(point, dict):
            raise ValueRangeError(f"point {index} is {point!r}", where="frontier", expected="an object")
        yield f"frontier[{index}]", point


def stated_problem(
    inputs: Json, model: str | Path | Model | Graph | None = None, hardware: str | Path | Cluster | None = None
) -> Problem:
    """The task that the file says it solved, built anew. Raises `PlacementError` where it is another one."""
    with named_in("inputs", model=model, hardware=hardware):
        problem = Problem.of(
            model if model is not None else _field(inputs, "model", str, "inputs"),
            hardware=hardware if hardware is not None else _field(inputs, "hardware", str, "inputs"),
            gpus=_field(inputs, "gpus", int, "inputs"),
            stage=_field(inputs, "stage", str, "inputs"),
            context=_field(inputs, "context", int, "inputs"),
            assumptions=stated_assumptions(inputs),
        )
    built = {"cluster": problem.cluster.fingerprint(), "graph": problem.graph.fingerprint}
    for name, fingerprint in built.items():
        if inputs.get(name) != fingerprint:
            raise PlacementError(
                f"the result is for another {name} than {problem.name} on {problem.cluster.platform.name} make",
                where="inputs",
                expected=f"{name} {fingerprint}",
                hint="name the file that it was made from",
            )
    return problem


def _check(problem: Problem, stated: Json, overlap: Overlap, seed: int, gpu_hour_usd: float | None) -> VerifiedPoint:
    """One point: its script, its values, its numbers, and its price if a GPU's hour has one."""
    prepared = stated_plan(problem, stated)
    certificate, batch = stated["certificate"], prepared.batch
    check_apart(prepared.problem, seed=seed)
    found = evaluated(prepared.plan, prepared.problem.blocks, seed=seed)
    _check_evidence(certificate, found)
    again = replace(
        prepared.point(overlap=overlap),
        origin=str(stated.get("origin", "")),
        bound_s=stated.get("bound_s"),
        bound_scope=str(stated.get("bound_scope", "")),
        certificate=certificate,
    )
    price = {} if gpu_hour_usd is None else {PRICE: usd_per_million_tokens(gpu_hour_usd, again.sim.tok_s_gpu)}
    _compare(stated, again.to_json() | price, "")
    _check_bound(stated)
    return VerifiedPoint(batch=batch, plan=again.plan, steps=_steps(certificate), evaluated=found.to_json())


def stated_plan(problem: Problem, stated: Json) -> Prepared:
    """A point of a file, its plan rebuilt from the certificate, at its batch size. Raises `PlacementError` and
    `ValueRangeError`."""
    certificate = _field(stated, "certificate", dict, "point")
    problem = _on_its_gpus(problem, stated).for_script(certificate)
    plan = replay(certificate, problem.blocks, problem.cluster)
    return Prepared(problem=problem, plan=plan, batch=problem.check_batch(_field(stated, "batch", int, "point")))


def _check_evidence(certificate: Json, found: Validation) -> None:
    """What the search says that it evaluated: the same dims and mesh, from a seed of its own."""
    stated = certificate.get("evaluated")
    if stated is not None:
        wanted = {**found.to_json(), "seed": stated.get("seed")}
        difference = first_difference(stated, wanted)
        if difference is not None:
            where, value, expected = difference
            raise PlacementError(f"{where} is {value!r}", where="certificate: evaluated", expected=repr(expected))


def _on_its_gpus(problem: Problem, stated: Json) -> Problem:
    """The problem on as many GPUs as the point has: a search may try several numbers of them."""
    mesh, stages = _field(stated, "mesh", list, "point"), _field(stated, "pp", int, "point")
    if not all(isinstance(size, int) for size in mesh):
        raise ValueRangeError(f"mesh is {mesh!r}", where="point", expected="whole numbers")
    gpus = math.prod(mesh) * stages
    return (
        problem
        if gpus == problem.cluster.gpus
        else replace(problem, cluster=Cluster.of(problem.cluster.platform, gpus))
    )


def _compare(stated: Any, found: Any, where: str) -> None:
    """Raise `PlacementError` for the first number or word that does not come out."""
    if isinstance(found, Mapping):
        keys = set(found) ^ set(stated) if isinstance(stated, Mapping) else {"it"}
        if keys:
            raise PlacementError(f"{where or 'the point'} has no, or one more, {sorted(keys)[0]!r}", where=where)
        for key, value in found.items():
            _compare(stated[key], value, f"{where}.{key}" if where else key)
    elif isinstance(found, Sequence) and not isinstance(found, str):
        if not isinstance(stated, Sequence) or len(stated) != len(found):
            raise PlacementError(f"{where} is {stated!r}", where=where, expected=repr(found))
        for index, value in enumerate(found):
            _compare(stated[index], value, f"{where}[{index}]")
    elif not _same(stated, found):
        raise PlacementError(f"{where} is {stated!r}", where=where, expected=repr(found))


def _same(stated: Any, found: Any) -> bool:
    if isinstance(found, float) and isinstance(stated, (int, float)) and not isinstance(stated, bool):
        return math.isclose(stated, found, rel_tol=TOLERANCE, abs_tol=0.0)
    return bool(stated == found and type(stated) is type(found))


def _check_bound(stated: Json) -> None:
    """A bound cannot be had without the search; but it bounds, and the gap is the one to it."""
    bound, step = stated["bound_s"], stated["step_s"]
    if bound is not None and not 0 < bound <= step * (1 + TOLERANCE):
        raise PlacementError(f"bound_s is {bound!r}", where="bound_s", expected=f"more than 0, at most {step!r}")


def _steps(script: Any) -> int:
    """Primitives in a script."""
    if isinstance(script, Mapping):
        return int("primitive" in script) + sum(_steps(value) for value in script.values())
    return sum(_steps(value) for value in script) if isinstance(script, (list, tuple)) else 0
