"""One number of pipeline stages of a search: its meshes, priced and looked at for all batch sizes, and the best plan
for one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.eqsat import Limits, StopReason, saturate_all
from rooflang.errors import CapacityError, LimitReached, PlacementError
from rooflang.extractors.bounds import quick_bounds_s
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.stages import extract
from rooflang.extractors.survey import Candidate, Survey
from rooflang.extractors.task import Extraction, Objective, Stages, Task
from rooflang.hw import Mesh
from rooflang.ir.collector import no_cycles
from rooflang.place.grid import balanced, layer_labels, partition
from rooflang.place.lower import lower
from rooflang.place.plan import Plan
from rooflang.search.effort import EFFORT, GAP, Effort
from rooflang.search.fix import FREE, MAX_AXES, Fixed
from rooflang.search.halves import by_stream
from rooflang.search.looks import ORIGIN, Configuration, Looked
from rooflang.search.point import nearer
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.seeds import grid_seeds
from rooflang.search.space import Space
from rooflang.sim.result import ROUNDING, Overlap, waves
from rooflang.sim.serial import Serial, Steps
from rooflang.sim.simulate import simulate

#: Where more than a few batch sizes are searched, and no other gap is asked for, the integer programme is run only
#: where more than this part of a step is left open.
WORTH, FEW = 1e-2, 3


OBJECTIVE: dict[Overlap, Objective] = {"perfect": "max", "none": "sum", "two-batch": "max"}


@dataclass(frozen=True, kw_only=True)
class Way:
    """What a search is about: the task, the batch sizes, and what it keeps to; `tiers` are the memories in which leaves
    may rest, and with `gathered` weights may rest cut, to be gathered where they are used."""

    problem: Problem
    batches: tuple[int, ...]
    overlap: Overlap
    disabled: frozenset[str] = frozenset()
    fixed: Fixed = FREE
    effort: Effort = EFFORT
    tiers: tuple[str, ...] = (HBM,)
    gathered: bool = False

    @property
    def waves(self) -> int:
        """Into how many parts the batch is cut, so that one computes while the other is on the network. A task is about
        one of them, and a step takes at least so many times its objective."""
        return waves(self.overlap)


#: A plan for a batch size (by number) on a mesh.
_Known = tuple[Configuration, int, Candidate]


@dataclass(frozen=True, kw_only=True)
class Best:
    """The end of a search for one batch size and number of stages.

    `plan` is None where nothing was found: because nothing fits, because what there may be is dominated, or because
    nothing is possible. `bound_s` holds for all meshes. The counts are those of `Evaluated`.
    """

    plan: Plan | None = None
    bound_s: float = math.inf
    nearest: CapacityError | None = None
    looked_at: int = 0
    screened_out: int = 0
    impossible: int = 0
    extracted: int = 0


@dataclass(kw_only=True, eq=False)
class Part:
    """The meshes for one number of stages. `cut_short` says that a saturation ended at the limit of nodes, `whole` that
    all meshes have been looked at, `interrupted` that Ctrl-C came before that. Batch sizes are asked for in ascending
    order: where one does not fit, larger ones are not tried."""

    way: Way
    stages: int
    found: list[Configuration] = field(default_factory=list)
    cut_short: bool = False
    whole: bool = False
    interrupted: bool = False
    _full: list[int] = field(default_factory=list)
    _serials: dict[Mesh, Serial] = field(default_factory=dict)

    @classmethod
    def of(cls, way: Way, stages: int, progress: Progress) -> Part:
        """Saturate, price and look at every mesh; at a limit, or Ctrl-C, those that are done by then."""
        part = cls(way=way, stages=stages)
        try:
            with no_cycles():
                part._look(progress)
        except KeyboardInterrupt:
            part.interrupted = True
        return part

    # -- a first look ---------------------------------------------------------------------------------------------

    def _look(self, progress: Progress) -> None:
        layers = self.way.fixed.partition or balanced(len(layer_labels(self.way.problem.blocks)), self.stages)
        labels = partition(self.way.problem.blocks, layers)
        for space in self.way.fixed.spaces(self.way.problem, self.stages):
            if progress.expired:
                return
            progress.say(f"saturating and pricing mesh {space.sizes}, pipeline {self.stages}")
            try:
                costed = self._costed(space)
            except PlacementError:
                continue  # no layout suits all blocks: with some rules disabled that happens
            objective = OBJECTIVE[self.way.overlap]
            task = Task(costed=costed, at=0, stages=labels, objective=objective, watch=progress)
            progress.say(f"looking at mesh {space.sizes}, pipeline {self.stages}")
            free = self.way.fixed.partition is None
            survey = Survey.of(task, quick_bounds_s(task, repartition=free), repartition=free)
            seeds = tuple(grid_seeds(self.way.problem, costed, self.stages))
            for _, seed in seeds:
                survey.pool.add(seed)
            valued = tuple((plan, seed, survey.pool.value_s(task, seed)) for plan, seed in seeds)
            self.found.append(Configuration(sizes=space.sizes, survey=survey, seeds=valued))
        self.whole = True

    def _costed(self, space: Space) -> CostedGraph:
        """The block kinds saturated and priced on a mesh. Raises `PlacementError` where nothing suits all of them."""
        way = self.way
        limits = Limits(nodes=way.effort.nodes)
        saturated = saturate_all(
            way.problem.blocks, len(space.sizes), disabled=way.disabled, limits=limits, gathered=way.gathered
        )
        self.cut_short |= any(block.stats.stop is not StopReason.SATURATED for block in saturated.values())
        mesh = Mesh.lay(way.problem.cluster, space.sizes, stages=self.stages)
        whole = way.problem.cost(mesh, np.array(way.batches, np.float64))
        cost = whole if way.waves == 1 else way.problem.cost(mesh, np.array(way.batches, np.float64) / way.waves)
        costed = CostedGraph.of(way.problem.blocks, space.menus(saturated), cost, tiers=way.tiers)
        return costed if way.waves == 1 else by_stream(costed, whole)

    @property
    def bounds_s(self) -> FloatArray:
        """Lower bounds (b,) on a step, over all meshes that were looked at; infinite where there is no plan."""
        nowhere = np.full(len(self.way.batches), np.inf)
        least = np.min([nowhere, *(config.survey.bounds_s for config in self.found)], axis=0)
        return np.asarray(least * self.way.waves)

    @property
    def possible(self) -> tuple[int, ...]:
        """On how many meshes each batch size is not ruled out."""
        every = [np.isfinite(config.survey.bounds_s) for config in self.found]
        return tuple(np.sum(every, axis=0, dtype=int).tolist() if every else [0] * len(self.way.batches))

    def looked(self) -> list[Looked]:
        """For each batch size the best plan known that fits, over all meshes."""
        if self.way.waves > 1:
            return list(self._raced())
        waiting: dict[int, list[_Known]] = {}
        for one in (*(known for each in self._known() for known in each), *self._seeded()):
            waiting.setdefault(one[1], []).append(one)
        for each in waiting.values():
            each.sort(key=lambda known: known[2].value_s)
        out: list[Looked] = []
        while waiting:
            found = self._simulated(each.pop(0) for each in waiting.values())
            out += found
            done = {one.at for one in found}
            waiting = {at: each for at, each in waiting.items() if each and at not in done}
        return out

    def _raced(self) -> Iterator[Looked]:
        """As `looked`, where the objective is only a lower bound, so that plans are simulated one by one."""
        for at in range(len(self.way.batches)):
            plans = [plan for config in self.found for plan in (*config.seeded(at), *config.rivals(at))]
            fastest = self._fastest(at, plans)
            if fastest is not None:
                yield fastest

    def _fastest(self, at: int, plans: Iterable[tuple[float, float, Plan]]) -> Looked | None:
        """The fastest of plans that fit, each with its C + N and its objective. They are tried in the order of the
        former: streams that wait for each other hide less than their sums say."""
        best: Looked | None = None
        for _, value_s, plan in sorted(plans, key=lambda each: each[0]):
            if self.way.waves * value_s < (math.inf if best is None else best.step_s):
                steps = self._steps(plan, [at])
                if steps.fits[0] and (best is None or steps.step_s[0] < best.step_s):
                    best = Looked.of(plan, at, steps, 0)
        return best

    def all_looked(self) -> list[Looked]:
        """For each batch size and mesh the best plan known; those that fit."""
        return self._simulated(known for each in self._known() for known in each)

    def _known(self) -> Iterator[list[_Known]]:
        """For each batch size the best known plan of every mesh that has one."""
        for at in range(len(self.way.batches)):
            each = [
                (config, at, config.survey.best(at)) for config in self.found if config.survey.bounds_s[at] < np.inf
            ]
            known = [(config, at, found) for config, at, found in each if found is not None]
            if known:
                yield known

    def _seeded(self) -> Iterator[_Known]:
        """The grid's plans where they are possible: should all others turn out too large, one of these may fit."""
        for config in self.found:
            for at in range(len(self.way.batches)):
                yield from ((config, at, one) for _, one in config.possible(at))

    def _simulated(self, known: Iterable[_Known]) -> list[Looked]:
        same: dict[object, list[_Known]] = {}
        for one in known:
            config, _, found = one
            same.setdefault((config.sizes, id(found.decisions)), []).append(one)
        out: list[Looked] = []
        with no_cycles():
            for waiting in same.values():
                while waiting:
                    waiting = self._together(waiting, out)
        return out

    def _together(self, known: list[_Known], out: list[Looked]) -> list[_Known]:
        """Simulate one choice of layouts at many batch sizes at once, for each of the ways in which they cut the layers
        into stages; returns those at which its values move in other ways than at the first one."""
        config, first, found = known[0]
        laid = config.plan(first, found)
        cuts: dict[Stages, list[_Known]] = {}
        for one in known:
            cuts.setdefault(one[2].stages, []).append(one)
        others = []
        for stages, alike in cuts.items():
            plan = replace(laid, stages=stages)
            steps = self._steps(plan, [at for _, at, _ in alike])
            for number, one in enumerate(alike):
                if one is not known[0] and steps.step_s[number] > one[2].value_s * (1.0 + ROUNDING):
                    others.append(one)
                elif steps.fits[number] and np.isfinite(steps.step_s[number]):
                    out.append(Looked.of(plan, one[1], steps, number))
        return others

    def _steps(self, plan: Plan, ats: Sequence[int]) -> Steps:
        """A plan simulated at several batch sizes: in closed form, or where that does not hold by the engine."""
        found = self._serial(plan.mesh).steps(plan, ats)
        if found is not None:
            return found
        problem, placed = self.way.problem, lower(plan, self.way.problem.blocks)
        step_s, peak_bytes, fits = np.full(len(ats), np.inf), np.zeros(len(ats)), np.zeros(len(ats), bool)
        for number, at in enumerate(ats):
            cost = problem.cost(plan.mesh, self.way.batches[at])
            try:
                sim = simulate(placed, cost, tokens=problem.tokens, overlap=self.way.overlap)
            except (CapacityError, PlacementError):
                continue
            step_s[number], peak_bytes[number], fits[number] = sim.step_s, sim.peak_bytes, True
        return Steps(step_s=step_s, peak_bytes=peak_bytes, fits=fits)

    def _serial(self, mesh: Mesh) -> Serial:
        """The closed form on a mesh, for all batch sizes."""
        if mesh not in self._serials:
            cost = self.way.problem.cost(mesh, np.array(self.way.batches, np.float64))
            self._serials[mesh] = Serial(self.way.problem.blocks, cost, self.way.overlap)
        return self._serials[mesh]

    # -- the best -------------------------------------------------------------------------------------------------

    def best(self, at: int, limit_s: float, progress: Progress, reserve_bytes: float = 0.0) -> Best:
        """The best plan for a batch size, to the gap asked for, that leaves so much of HBM free; if there is one faster
        than `limit_s`."""
        batch, waves = self.way.batches[at], self.way.waves
        if _hopeless(batch, self._full, self.way.problem.cluster.gpus // self.stages):
            return Best()
        best: Extraction | None = None
        nearest: CapacityError | None = None
        bound_s, full, cut_off, unsure = math.inf, False, False, False
        screened_out = impossible = extracted = 0
        for config in sorted(self.found, key=lambda each: self._promise(each, at)):
            progress.say(f"batch {batch}, {config.name}")
            cutoff_s = limit_s / waves
            if best is not None:
                cutoff_s = min(cutoff_s, best.value_s / (1.0 + self.way.effort.gap))
            least_s = float(config.survey.bounds_s[at])
            if cutoff_s <= least_s < math.inf:
                screened_out += 1
                bound_s, cut_off = min(bound_s, least_s), True
                continue
            if progress.expired:
                bound_s, unsure = min(bound_s, least_s), True  # even what comes before the programme takes long
                impossible += 1
                continue
            try:
                found = self._extract(config, at, cutoff_s, progress, reserve_bytes)
            except CapacityError as error:
                full, nearest = True, nearer(nearest, error)
                impossible += 1
                continue
            except PlacementError:
                impossible += 1
                continue
            except LimitReached:
                bound_s, unsure = min(bound_s, least_s), True  # it may have had the best plan of all
                impossible += 1
                continue
            bound_s = min(bound_s, max(found.bound_s, min(least_s, found.value_s)))
            if found.status == "cut off":
                screened_out += 1
                cut_off = True
                continue
            extracted += 1
            if best is None or found.value_s < best.value_s:
                best = found
        if best is None and full and not cut_off and not unsure and not reserve_bytes:
            self._full.append(batch)
        return Best(
            plan=None if best is None else self._chosen(at, best),
            bound_s=bound_s * waves,
            nearest=nearest,
            looked_at=len(self.found),
            screened_out=screened_out,
            impossible=impossible,
            extracted=extracted,
        )

    def _chosen(self, at: int, best: Extraction) -> Plan:
        """The plan of the best extraction; where that is only a lower bound, the fastest plan known that fits."""
        if self.way.waves == 1:
            return best.plan(ORIGIN)
        plans = [rival for config in self.found for rival in config.rivals(at)]
        fastest = self._fastest(at, [*plans, (best.local_s + best.exposed_s, best.value_s, best.plan(ORIGIN))])
        return best.plan(ORIGIN) if fastest is None else fastest.plan

    def _promise(self, config: Configuration, at: int) -> float:
        """What a mesh is known to reach at a batch size."""
        if not np.isfinite(config.survey.bounds_s[at]):
            return math.inf
        found = config.survey.best(at)
        return math.inf if found is None else found.value_s

    def _worth(self, config: Configuration) -> float:
        """The part of a step that may be left open without the integer programme. On more axes than usual it would take
        minutes."""
        effort = self.way.effort
        if effort.gap != GAP:
            return effort.gap
        if len(config.sizes) > MAX_AXES:
            return math.inf
        return WORTH if len(self.way.batches) > FEW else effort.gap

    def _extract(
        self, config: Configuration, at: int, cutoff_s: float, progress: Progress, reserve_bytes: float
    ) -> Extraction:
        return extract(
            replace(config.survey.task, at=at, reserve_bytes=reserve_bytes, watch=progress),
            gap=self.way.effort.gap,
            worth=self._worth(config),
            cutoff_s=cutoff_s,
            repartition=self.way.fixed.partition is None,
            pool=config.survey.pool,
        )


def _hopeless(batch: int, full: Sequence[int], ranks: int) -> bool:
    """Does a batch size not fit because a smaller one did not? Only if that one divides over as many of the ranks:
    7 requests on each of 8 GPUs may be too much where 8 are one for each."""
    return any(math.gcd(smaller, ranks) % math.gcd(batch, ranks) == 0 for smaller in full)
