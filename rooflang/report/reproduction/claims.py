"""What the paper's analysis says about its figures, each statement beside computed numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

from rooflang.errors import CapacityError
from rooflang.hw import Cluster
from rooflang.report.needs import model_needs
from rooflang.report.reproduction.frontiers import Curve
from rooflang.report.reproduction.jobs import Job
from rooflang.report.reproduction.setting import PROFILES, Scope, Setting
from rooflang.search.evaluate import evaluate
from rooflang.search.fix import FREE
from rooflang.search.grid import grid_candidates
from rooflang.search.point import Point
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import batch_sizes

#: An end of a curve is explained by a formula if it reaches at least this part of what the formula says, which is a
#: ceiling for one device, and no more than the ceiling with the other margin: weights that are shared out over GPUs
#: are read at the bandwidth of all of them.
REACHES, EXCEEDS = 0.5, 1.5

#: NVLink scopes that are compared: (GPUs in the cluster, GPUs in a domain), on GB300. Its largest domain has 72 GPUs;
#: experts lie on 8 of them for each stage there, as 72 divides the experts of no model.
SCOPES = ((64, 8), (64, 64), (72, 72))


def scope_jobs(scope: Scope) -> Iterator[Job]:
    """The grid's best decode throughput for each NVLink scope, one job each."""
    for assumptions in PROFILES:
        for model in scope.models:
            for context in scope.contexts:
                for gpus, domain in SCOPES:
                    setting = _scoped(model, context, gpus)
                    yield Job(
                        name=f"claims/{setting.stem}-domain-{domain}-{assumptions}",
                        work=scoped_peak,
                        asked={**setting.asked(), "domain": domain, "assumptions": assumptions},
                        weight=3.5 if model == "kimi-k3" else 1.5,
                    )


def _scoped(model: str, context: int, gpus: int) -> Setting:
    return Setting(model=model, stage="decode", context=context, hardware="gb300", gpus=gpus)


def scoped_peak(*, hardware: str, gpus: int, domain: int, **asked: Any) -> dict[str, Any]:
    """The point of most throughput, and the share of routing (router, dispatch and combine) in its run without
    overlap."""
    best = _grid_peak(Problem.of(**asked, hardware=Cluster.of(hardware, gpus, domain=domain)))
    if best is None:
        return {"tok_s_gpu": None, "routing": None, "batch": None, "pp": None}
    groups = best.sim.groups_s
    routing = sum(groups.get(group, 0.0) for group in ("dispatch", "router")) / sum(groups.values())
    return {"tok_s_gpu": best.sim.tok_s_gpu, "routing": routing, "batch": best.batch, "pp": best.pp}


def _grid_peak(problem: Problem) -> Point | None:
    """The grid's point of most throughput that fits. What costs promise is an upper limit of what comes out, so that
    few candidates have to be simulated."""
    found = grid_candidates(
        problem, FREE.degrees(problem, None), batch_sizes(problem, None), "perfect", Progress(sink=lambda _: None)
    )
    best: Point | None = None
    for candidate in sorted(found, key=lambda each: each.step_s / each.batch):
        promised = candidate.batch * problem.tokens / (candidate.step_s * problem.cluster.gpus)
        if best is not None and promised <= best.sim.tok_s_gpu:
            break
        with suppress(CapacityError):
            point = evaluate(problem, candidate.plan, candidate.batch, overlap="perfect")
            best = point if best is None or point.sim.tok_s_gpu > best.sim.tok_s_gpu else best
    return best


#: Gains that differ by less are alike.
_FELT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a curve of the grid beside the formula that the analysis explains it by."""

    setting: Setting
    assumptions: str
    simulated: float
    formula: float

    @property
    def ratio(self) -> float:
        return self.simulated / self.formula

    @property
    def holds(self) -> bool:
        return REACHES <= self.ratio <= EXCEEDS


def curve_ends(curves: Sequence[Curve], stage: str) -> list[End]:
    """Prefill: the left end, most tokens per second and GPU, beside the FLOP rate of a GPU over the model's FLOPs per
    token, each dtype at its own rate. Decode: the right end, most tokens per second and user, beside the bandwidth of
    a GPU over the bytes that one request makes it read, active weights and KV cache."""
    out = []
    known: dict[tuple[object, ...], float] = {}
    for curve in curves:
        setting, assumptions = curve.setting, curve.series.assumptions
        if curve.series.search != "grid" or setting.stage != stage or not curve.points:
            continue
        key = (setting.model, setting.stage, setting.context, setting.hardware, assumptions)
        if key not in known:
            known[key] = _ceiling(setting, assumptions)
        name = "tok_s_gpu" if stage == "prefill" else "tok_s_user"
        simulated = max(float(point[name]) for point in curve.points)
        out.append(End(setting=setting, assumptions=assumptions, simulated=simulated, formula=known[key]))
    return out


def _ceiling(setting: Setting, assumptions: str) -> float:
    (step,) = model_needs(
        setting.model, stage=setting.stage, contexts=[setting.context], batches=[1], assumptions=assumptions
    )
    device = Cluster.of(setting.hardware, setting.gpus).device
    if setting.stage == "prefill":
        return 1.0 / step.total.compute_s(device)
    return device.hbm_bytes_per_s / (step.total.weight_bytes + step.total.kv_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndVerdict:
    """How well a formula explains the ends of all curves of a profile."""

    assumptions: str
    count: int
    holds: int
    least: float
    middle: float
    most: float

    @classmethod
    def of(cls, assumptions: str, ends: Sequence[End]) -> EndVerdict:
        ratios = [end.ratio for end in ends]
        return cls(
            assumptions=assumptions,
            count=len(ends),
            holds=sum(end.holds for end in ends),
            least=min(ratios),
            middle=median(ratios),
            most=max(ratios),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRow:
    """Peak decode throughput of a model by NVLink scope; `routing` is its share in the run with the smallest scope."""

    model: str
    context: int
    assumptions: str
    tok_s_gpu: Mapping[int, float | None]
    routing: float | None

    @property
    def gain(self) -> float | None:
        """By how much the largest scope of the same number of GPUs beats the smallest."""
        small, large = (self.tok_s_gpu[domain] for gpus, domain in SCOPES if gpus == SCOPES[0][0])
        return None if small is None or large is None else large / small - 1.0


def scope_rows(scope: Scope, results: Mapping[str, Mapping[str, Any]]) -> list[ScopeRow]:
    """The rows whose jobs all have results."""
    out = []
    for assumptions in PROFILES:
        for model in scope.models:
            for context in scope.contexts:
                found = {}
                for gpus, domain in SCOPES:
                    setting = _scoped(model, context, gpus)
                    found[domain] = results.get(f"claims/{setting.stem}-domain-{domain}-{assumptions}")
                known = {domain: data for domain, data in found.items() if data is not None}
                if len(known) == len(found):
                    out.append(
                        ScopeRow(
                            model=model,
                            context=context,
                            assumptions=assumptions,
                            tok_s_gpu={domain: data["tok_s_gpu"] for domain, data in known.items()},
                            routing=known[SCOPES[0][1]]["routing"],
                        )
                    )
    return out


def scope_holds(rows: Sequence[ScopeRow]) -> tuple[bool, bool]:
    """The two halves of the statement: a larger scope gains more where routing takes more of the time (of two models at
    the same context, in most pairs), and a model gains less from it at the longer context."""
    pairs, agreeing = 0, 0
    for one in rows:
        for other in rows:
            if (one.context, one.assumptions) != (other.context, other.assumptions) or one.model >= other.model:
                continue
            if None in (one.gain, other.gain, one.routing, other.routing):
                continue
            if abs(one.gain - other.gain) < _FELT:  # type: ignore[operator]
                continue  # neither of them gains more
            pairs += 1
            agreeing += (one.routing > other.routing) == (one.gain > other.gain)  # type: ignore[operator]
    gains: dict[tuple[str, str], list[float]] = {}
    for row in sorted(rows, key=lambda row: row.context):
        if row.gain is not None:
            gains.setdefault((row.model, row.assumptions), []).append(round(row.gain, 3))
    shrinks = all(found == sorted(found, reverse=True) for found in gains.values())
    return 2 * agreeing > pairs, shrinks
