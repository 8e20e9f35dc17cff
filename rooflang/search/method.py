"""The way a search is done, and the searches over one cluster or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from rooflang.errors import CapacityError, RooflangError, UnknownNameError, ValueRangeError
from rooflang.ir.cut import Spec
from rooflang.rules import rule
from rooflang.search.effort import EFFORT, Effort
from rooflang.search.fix import Fixed
from rooflang.search.goal import Goal
from rooflang.search.grid import search_grid
from rooflang.search.point import Evaluated, Found, Point, nearer
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import batch_sizes, between
from rooflang.sim.result import Overlap, waves

Search = Literal["egraph", "grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How to search. `batch` and `pp` are those asked for, `fix` the parts of a plan that are given, `held` the specs
    in which leaves may be read that another plan has laid. Raises `UnknownNameError`, `ValueRangeError` for what does
    not go together."""

    search: Search = "egraph"
    overlap: Overlap = "perfect"
    disabled: frozenset[str] = frozenset()
    batch: tuple[int, ...] | None = None
    pp: int | None = None
    fix: tuple[str, ...] = ()
    effort: Effort = EFFORT
    held: Mapping[str, frozenset[Spec]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.disabled:
            rule(name)  # refuses unknown names
        if self.disabled and self.search == "grid":
            raise ValueRangeError("the grid applies no rules, so that none can be disabled", where="--disable-rule")
        for what, value, known in (
            ("search", self.search, ("egraph", "grid")),
            ("overlap", self.overlap, get_args(Overlap)),
        ):
            if value not in known:
                raise UnknownNameError(what, value, known, where=f"--{what}")

    def _batches(self, problem: Problem) -> tuple[int, ...]:
        """The batch sizes to search: those that can be halved, where halves overlap each other."""
        sizes = tuple(batch for batch in batch_sizes(problem, self.batch) if self._runs(batch))
        if not sizes or (self.overlap == "two-batch" and not problem.has_batch):
            raise ValueRangeError("no batch can be halved", where="--overlap two-batch", expected="an even batch size")
        return sizes

    def _runs(self, batch: int) -> bool:
        return batch % waves(self.overlap) == 0

    def inputs(self) -> dict[str, Any]:
        """For the hash of a result's inputs."""
        return {
            "batch": list(self.batch) if self.batch else None,
            "pp": self.pp,
            "search": self.search,
            "overlap": self.overlap,
            "disabled_rules": sorted(self.disabled),
            **({"fix": sorted(self.fix)} if self.fix else {}),
            **self.effort.inputs(),
        }

    def run(self, problem: Problem, watch: Progress) -> Found:
        """Search one cluster. Raises for what cannot be asked of the problem, never for what was not found."""
        fixed = replace(Fixed.read(self.fix, problem), held=self.held, axes=self.effort.axes)
        degrees, batches = fixed.degrees(problem, self.pp), self._batches(problem)
        if self.search == "grid":
            if fixed.groups:
                raise ValueRangeError(
                    "the grid lays all groups of operators by its shape",
                    where=f"--fix {next(iter(fixed.groups))}",
                    expected="dp, cp, ep, pp, mesh or partition, or the search egraph",
                )
            return search_grid(problem, degrees, batches, self.overlap, watch, fixed=fixed)
        from rooflang.search.egraph import search_egraph

        # What is fixed is said of operators one by one, which is more than can be said of two in one kernel.
        joins = "fuse_kernels" not in self.disabled and not (fixed.groups or fixed.rules or fixed.shaped)
        return search_egraph(
            problem.sharing() if joins else problem,
            degrees,
            batches,
            self.overlap,
            self.disabled,
            watch,
            fixed=fixed,
            effort=self.effort,
            every=self.batch is not None,
        )


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What searches found: each point with the problem it solves, and what they took together. `left_out` are the
    problems that the method cannot be asked of, with why; `unsearched` those that a limit or Ctrl-C came before."""

    points: tuple[tuple[Point, Problem], ...]
    left_out: tuple[tuple[Problem, RooflangError], ...]
    unsearched: tuple[Problem, ...]
    evaluated: Evaluated
    stopped_by: str
    nearest: CapacityError | None

    @classmethod
    def all(cls, method: Method, problems: Sequence[Problem], watch: Progress) -> Searched:
        """Search every problem, those first whose weights have room in HBM, each with an equal share of the time that
        is left for them: the others take far longer, and rarely have what is looked for. Raises what cannot be asked of
        any problem."""
        found: dict[int, tuple[Found, Problem]] = {}
        refused: dict[int, tuple[Problem, RooflangError]] = {}
        waiting = sorted(range(len(problems)), key=lambda number: not problems[number].has_room)
        while waiting:
            number = waiting.pop(0)
            problem = problems[number]
            sharing = 1 + sum(problems[other].has_room == problem.has_room for other in waiting)
            with watch.share(sharing) as turn:
                turn.topic = _size(problem) if len(problems) > 1 else ""
                try:
                    found[number] = method.run(problem, turn), problem
                except RooflangError as error:
                    refused[number] = problem, error
            if found and (watch.expired or any(one.stopped_by == "interrupted" for one, _ in found.values())):
                break
        if not found:
            raise refused[min(refused)][1]
        unsearched = tuple(problems[number] for number in sorted(waiting))
        return cls._of([found[n] for n in sorted(found)], [refused[n] for n in sorted(refused)], unsearched, watch)

    def finer(self, method: Method, goal: Goal, watch: Progress) -> Searched:
        """With what there is between the batch sizes around the point that a goal asks for: powers of two are far
        apart, and the best batch size under a constraint, or the largest that fits, lies between two of them."""
        if goal.objective not in ("throughput", "cost") or method.batch is not None or watch.expired:
            return self
        good = [(point, problem) for point, problem in self.points if goal.meets(point, problem.tokens)]
        best = next(iter(goal.choose([point for point, _ in good])), None)
        problem = next((problem for point, problem in good if point is best), None)
        if (
            best is None
            or problem is None
            or not problem.has_batch
            or best.batch == 1
            or self.stopped_by == "interrupted"
        ):
            return self
        sizes = tuple(batch for batch in between(best.batch) if method._runs(batch))
        if not sizes:
            return self
        more = replace(method, batch=sizes, pp=best.pp).run(problem, watch)
        return replace(
            self,
            points=(*self.points, *((point, problem) for point in more.points)),
            evaluated=_sum([self.evaluated, more.evaluated]),
            stopped_by=more.stopped_by,
        )

    @classmethod
    def _of(
        cls,
        found: Sequence[tuple[Found, Problem]],
        refused: Sequence[tuple[Problem, RooflangError]],
        unsearched: tuple[Problem, ...],
        watch: Progress,
    ) -> Searched:
        nearest = None
        for one, _ in found:
            nearest = nearer(nearest, one.nearest)
        interrupted = any(one.stopped_by == "interrupted" for one, _ in found)
        return cls(
            points=tuple((point, problem) for one, problem in found for point in one.points),
            left_out=tuple(refused),
            unsearched=unsearched,
            evaluated=_sum([one.evaluated for one, _ in found]),
            stopped_by="interrupted" if interrupted else watch.stopped_by,
            nearest=nearest,
        )


def _size(problem: Problem) -> str:
    """What progress says first where several numbers of GPUs are searched."""
    return f"{problem.cluster.gpus} GPUs: "


def _sum(work: Sequence[Evaluated]) -> Evaluated:
    return Evaluated(**{name: sum(getattr(each, name) for each in work) for name in Evaluated.__dataclass_fields__})
