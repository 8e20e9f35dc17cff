"""Plans for one replica of a stage, from the search: those that no other beats in speed and throughput."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from rooflang.assumptions import Assumptions, profile
from rooflang.cost.tiers import HBM
from rooflang.errors import CapacityError, HardwareError, RooflangError
from rooflang.hw import Cluster, Platform
from rooflang.ir.cut import Spec
from rooflang.ir.graph import Graph
from rooflang.ir.tensor import Role
from rooflang.models import Model, Workload, load
from rooflang.models.measure import weight_bytes
from rooflang.models.workload import Stage
from rooflang.place.certificate import replay
from rooflang.place.lower import lower
from rooflang.place.plan import Plan
from rooflang.search.evaluate import evaluate
from rooflang.search.method import Method
from rooflang.search.point import Point, pareto
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.service.demand import Demand
from rooflang.service.offer import Choice

#: Prompts in a prefill step are few: more of them only make each wait for the others.
PROMPTS = (1, 2, 4, 8, 16, 32, 64)

#: The rule that lets leaves lie in other memories than HBM.
_ELSEWHERE = frozenset({"insert_identity"})


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Choices for a replica of some GPUs, fastest for a user first; in decode the most requests that one could hold."""

    choices: tuple[Choice, ...]
    admits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """Where a plan holds its weights: its mesh, the layers of its stages, and each weight with the specs in which some
    kernel reads it, in the labels of prefill."""

    mesh: tuple[int, ...]
    partition: tuple[int, ...]
    weights: frozenset[tuple[str, frozenset[Spec]]]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Where the curves of one model come from."""

    model: str | Path | Model
    demand: Demand
    assumptions: str | Assumptions
    method: Method
    watch: Progress

    def sizes(self, platform: Platform, gpus: int) -> tuple[int, ...]:
        """GPUs of a replica: every divisor of the GPUs that the platform can be built of; where some of them have room
        for the weights in HBM, those alone."""
        built = tuple(size for size in range(1, gpus + 1) if gpus % size == 0 and _built(platform, size))
        return tuple(size for size in built if self._holds(platform, size)) or built

    def _holds(self, platform: Platform, gpus: int) -> bool:
        """Is there room for the weights in HBM?"""
        return weight_bytes(self._prompt) <= gpus * Cluster.of(platform, gpus).device.hbm_bytes

    @cached_property
    def _prompt(self) -> Graph:
        return self.graph("prefill", self.demand.prompt)

    def decode(self, platform: Platform, gpus: int) -> Curve:
        """Decode plans on replicas of that many GPUs, found with full caches and timed with average ones."""
        full = self.problem(platform, gpus, "decode", self.demand.longest)
        mean = self.problem(platform, gpus, "decode", self.demand.mean)
        points = self._points(full, self.method)
        choices = []
        for point in pareto(points):
            laid = mean.for_script(point.certificate)
            timed = evaluate(laid, plan_of(point, full), point.batch, overlap=self.method.overlap)
            choices.append(Choice(point=point, problem=full, step_s=timed.sim.step_s))
        return Curve(choices=tuple(choices), admits=max((p.batch * p.pp for p in points), default=0))

    def prefill(self, platform: Platform, gpus: int) -> Curve:
        """Prefill plans on replicas of that many GPUs."""
        return self._prefill(platform, gpus, self.method)

    def laid(self, decode: Choice) -> Laid:
        """Where a decode plan holds its weights."""
        plan, point = plan_of(decode.point, decode.problem), decode.point
        held = relabelled(weights_of(plan, decode.problem), decode.problem.graph, self._prompt)
        return Laid(mesh=point.mesh, partition=point.pp_partition, weights=frozenset(held.items()))

    def prefill_beside(self, platform: Platform, gpus: int, laid: Laid) -> Curve:
        """Prefill plans on the same GPUs as a decode plan, with the weights where that one holds them; of all batch
        sizes, since what fits depends on the decode plan."""
        fix = "mesh=" + ("x".join(map(str, laid.mesh)) or "1"), "partition=" + ",".join(map(str, laid.partition))
        return self._prefill(platform, gpus, replace(self.method, held=dict(laid.weights), fix=fix))

    def _prefill(self, platform: Platform, gpus: int, method: Method) -> Curve:
        problem = self.problem(platform, gpus, "prefill", self.demand.prompt)
        points = self._points(problem, replace(method, batch=PROMPTS))
        if not method.held:
            return Curve(choices=tuple(Choice(point=p, problem=problem, step_s=p.sim.step_s) for p in pareto(points)))
        choices = (
            Choice(point=p, problem=problem, step_s=p.sim.step_s, works_on_bytes=_works_on(p, problem)) for p in points
        )
        return Curve(choices=tuple(choices))

    def problem(self, platform: Platform, gpus: int, stage: Stage, context: int) -> Problem:
        """What a search for a replica solves."""
        return Problem.of(
            self.model,
            hardware=Cluster.of(platform, gpus),
            stage=stage,
            context=context,
            assumptions=self._assumed(stage),
        )

    def graph(self, stage: Stage, context: int) -> Graph:
        """The graph of a step for one request."""
        model = self.model if isinstance(self.model, Model) else load(self.model)
        return model.build(Workload(stage=stage, context=context, batch=1), self._assumed(stage))

    def _assumed(self, stage: Stage) -> Assumptions:
        """What is assumed of a stage: only decode drafts tokens."""
        taken = self.assumptions if isinstance(self.assumptions, Assumptions) else profile(self.assumptions)
        return taken if stage == "decode" else replace(taken, draft_tokens=0, accepted_tokens=1.0)

    def _points(self, problem: Problem, method: Method) -> tuple[Point, ...]:
        """What a search finds; nothing where nothing fits or can be laid so."""
        cluster = problem.cluster
        self.watch.say(f"{problem.stage} on {cluster}")
        if self._holds(cluster.platform, cluster.gpus):
            method = replace(method, disabled=method.disabled | _ELSEWHERE)
        try:
            found = method.run(problem, self.watch)
        except CapacityError:
            return ()
        except RooflangError:
            if not method.held:
                raise
            return ()
        if found.stopped_by == "interrupted":
            raise KeyboardInterrupt
        return found.points


def plan_of(point: Point, problem: Problem) -> Plan:
    """The plan of a point, from its certificate."""
    problem = problem.for_script(point.certificate)
    return replay(point.certificate, problem.blocks, problem.cluster)


def weights_of(plan: Plan, problem: Problem) -> dict[str, frozenset[Spec]]:
    """How each weight lies, in every way that some kernel reads it."""
    held: dict[str, set[Spec]] = {}
    for name, spec in _reads(plan, problem):
        held.setdefault(name, set()).add(spec)
    return {name: frozenset(specs) for name, specs in held.items()}


def relabelled(held: Mapping[str, frozenset[Spec]], old: Graph, new: Graph) -> dict[str, frozenset[Spec]]:
    """The same specs of weights in another graph of the model, where a weight may have its dims in another order, and
    some of them under another label."""
    dims = {leaf.name: leaf.dims for leaf in old.leaves}
    out = {}
    for leaf in new.leaves:
        if leaf.name in held:
            before = [label for label in dims[leaf.name] if label not in leaf.dims]
            now = dict(zip(before, (label for label in leaf.dims if label not in dims[leaf.name]), strict=True))
            out[leaf.name] = frozenset(tuple(now.get(label, label) for label in spec) for spec in held[leaf.name])
    return out


def _works_on(point: Point, problem: Problem) -> tuple[float, ...]:
    """Bytes of HBM that each stage of a plan needs on a GPU at its peak, weights left out."""
    plan = plan_of(point, problem)
    laid = problem.for_script(point.certificate)
    cost = laid.cost(plan.mesh, point.batch)
    weights = [0.0] * point.pp
    for leaf in lower(plan, laid.blocks).residents:
        if leaf.tensor.role is Role.WEIGHT and leaf.tier == HBM:
            weights[leaf.stage] += float(cost.bytes(leaf.tensor, leaf.spec))
    return tuple(stage.peak_bytes - own for stage, own in zip(point.sim.stages, weights, strict=True))


def _reads(plan: Plan, problem: Problem) -> Iterator[tuple[str, Spec]]:
    blocks = problem.blocks
    for label in blocks.sequence:
        names = blocks.rename[label]
        for mode in plan.blocks[blocks.kind_of[label]].modes.values():
            for tensor, spec in zip(mode.op.operands, mode.operands, strict=True):
                if tensor.role is Role.WEIGHT:
                    yield names.get(tensor.name, tensor.name), spec


def _built(platform: Platform, gpus: int) -> bool:
    try:
        Cluster.of(platform, gpus)
    except HardwareError:
        return False
    return True
