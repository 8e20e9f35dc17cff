"""Curves of Figures 3 and 4: what the grid and what the automatic search reach, in each setting under each profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rooflang.assumptions import profile
from rooflang.errors import CapacityError, LimitReached
from rooflang.models import Workload, load
from rooflang.models.measure import kv_footprint_bytes, weight_bytes
from rooflang.report.reproduction.jobs import Job
from rooflang.report.reproduction.setting import PROFILES, Scope, Setting
from rooflang.search.api import optimize
from rooflang.search.fix import FREE
from rooflang.search.grid import grid_candidates
from rooflang.search.method import Search
from rooflang.search.point import Point, Result
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress, silent

#: Ways to search, the paper's own first.
SEARCHES: tuple[Search, ...] = ("grid", "egraph")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A way to search under an assumption profile."""

    search: Search
    assumptions: str

    @property
    def title(self) -> str:
        return f"{'grid' if self.search == 'grid' else 'e-graph'}, {self.assumptions}"


SERIES = tuple(Series(search=search, assumptions=profile) for profile in PROFILES for search in SEARCHES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """All points that a search simulated in a setting, and those of them that are on the frontier, highest
    interactivity first. Without points `refusal` says why. Points are as `Point.to_json` makes them, without
    certificates."""

    setting: Setting
    series: Series
    points: Sequence[Mapping[str, Any]]
    stopped_by: str
    refusal: str

    @property
    def frontier(self) -> list[Mapping[str, Any]]:
        mine = [point for point in self.points if point["on_frontier"]]
        return sorted(mine, key=lambda point: -float(point["tok_s_user"]))

    def best(self, batch: int) -> Mapping[str, Any] | None:
        """The point of most throughput at a batch size."""
        mine = [point for point in self.points if point["batch"] == batch]
        return max(mine, key=lambda point: float(point["tok_s_gpu"]), default=None)


def frontier_jobs(scope: Scope, series: Iterable[Series] = SERIES) -> Iterator[Job]:
    """One job for each curve."""
    for each in series:
        for setting in scope.settings():
            yield Job(
                name=_name(setting, each),
                work=search_setting,
                asked={
                    **setting.asked(),
                    "search": each.search,
                    "assumptions": each.assumptions,
                    **(_limits(scope) if each.search == "egraph" else {}),
                },
                weight=_weight(setting, each, scope.limit_s),
            )


def _limits(scope: Scope) -> dict[str, Any]:
    """What keeps the automatic search to the time that there is."""
    return {"batch": scope.batches, "effort": scope.effort, "time_limit_s": scope.limit_s}


def search_setting(**asked: Any) -> dict[str, Any]:
    """Search a setting, in one process: it is one of many jobs. Arguments are those of `optimize`; of the batch sizes
    an automatic search has those that HBM may have room for. What does not fit at all is an answer, too."""
    if asked["search"] == "egraph":
        asked["batch"] = _with_room(**asked)
        if not asked["batch"]:
            return {"points": [], "stopped_by": "complete", "refusal": "weights and caches exceed the HBM of all GPUs"}
    try:
        found = optimize(**asked, jobs=1)
    except CapacityError as error:
        return {"points": [], "stopped_by": "complete", "refusal": error.what}
    except LimitReached:
        return {"points": [], "stopped_by": "time limit", "refusal": "no plan within the time limit"}
    return {"points": list(_slim(found)), "stopped_by": found.stopped_by, "refusal": ""}


def _with_room(batch: Sequence[int] = (), **asked: Any) -> tuple[int, ...]:
    """The batch sizes with which weights and caches, each of them once, fit into the HBM of all GPUs together. Caches
    are those that decode begins with: what prefill leaves behind. In prefill activations take more: there it is up to
    the largest that the grid may have room for, and the smallest of all where it has room for none."""
    names = ("model", "hardware", "gpus", "stage", "context", "assumptions")
    problem = Problem.of(**{name: asked[name] for name in names})
    before = Workload(stage="decode", context=asked["context"], batch=1)
    graph = load(asked["model"]).build(before, profile(asked["assumptions"]))
    room = problem.cluster.gpus * problem.cluster.device.hbm_bytes - weight_bytes(graph)
    some = tuple(each for each in batch if each * kv_footprint_bytes(graph) <= room)
    if problem.stage == "decode" or not some:
        return some
    found = grid_candidates(problem, FREE.degrees(problem, None), some, "perfect", Progress(sink=silent))
    most = max((candidate.batch for candidate in found), default=some[0])
    return tuple(each for each in some if each <= most)


def curves(scope: Scope, results: Mapping[str, Mapping[str, Any]], series: Iterable[Series] = SERIES) -> list[Curve]:
    """The curves whose jobs have results."""
    out = []
    for each in series:
        for setting in scope.settings():
            data = results.get(_name(setting, each))
            if data is not None:
                out.append(
                    Curve(
                        setting=setting,
                        series=each,
                        points=data["points"],
                        stopped_by=data["stopped_by"],
                        refusal=data["refusal"],
                    )
                )
    return out


def _name(setting: Setting, series: Series) -> str:
    return f"frontiers/{setting.stem}-{series.search}-{series.assumptions}"


def _slim(found: Result) -> Iterator[dict[str, Any]]:
    """Points without what only their replay needs: the command line of a setting computes that again."""
    on_frontier = {_key(point) for point in found.frontier}
    for point in found.points:
        data = point.to_json()
        for name in ("certificate", "largest_tensors", "bound_scope", "groups_s"):
            del data[name]
        yield {**data, "on_frontier": _key(point) in on_frontier}


def _key(point: Point) -> tuple[object, ...]:
    return point.batch, point.pp, point.mesh, point.pp_partition, point.plan


def _weight(setting: Setting, series: Series, limit_s: float) -> float:
    """Seconds, roughly, on one core."""
    layers = {"deepseek-v4-flash": 1.0, "glm-5.3": 1.5, "deepseek-v4-pro": 1.8, "kimi-k3": 4.0}
    size = layers.get(setting.model, 2.0) * (1.0 if setting.gpus <= 8 else 2.5)
    return 1.5 * size if series.search == "grid" else min(3.0 * size, limit_s)
