"""The nearest plan that a stack can run, and what it loses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rooflang.errors import PlacementError, RooflangError
from rooflang.ir.tensor import Role
from rooflang.place.grid import balanced, layer_labels
from rooflang.search.effort import EFFORT
from rooflang.search.egraph import search_egraph
from rooflang.search.point import Point
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.sim.result import Overlap
from rooflang.stacks.shape import Shape, shapes, words_of
from rooflang.stacks.stack import Launch, Stack


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """For a plan that was found, the best one that a stack has flags for, at the same batch size."""

    stack: Stack
    optimal: Point
    point: Point
    shape: Shape
    command: str

    @property
    def loss(self) -> float:
        """How much longer a step takes than with the optimal plan, relative. With another number of stages: how much of
        throughput or of interactivity is lost, whichever loses more."""
        return 1.0 / _share(self.point, self.optimal) - 1.0

    @property
    def missing(self) -> tuple[tuple[str, str, str], ...]:
        """(group of operators, its cuts in the optimal plan, its cuts here) where they differ."""
        own, best = words_of(self.point.plan), words_of(self.optimal.plan)
        return tuple((group, cuts, own.get(group, "as one")) for group, cuts in best.items() if own.get(group) != cuts)

    def to_json(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {
            "stack": self.stack.name,
            "version": self.stack.version,
            "command": self.command,
            "batch": self.point.batch,
            "loss": self.loss,
            "cannot_express": [{"group": group, "optimal": best, "here": here} for group, best, here in self.missing],
            "point": self.point.to_json(),
        }


def _share(point: Point, optimal: Point) -> float:
    """What a plan keeps of the throughput and the interactivity of another, whichever is less."""
    own, best = point.sim, optimal.sim
    return min(own.tok_s_gpu / best.tok_s_gpu, own.tok_s_user / best.tok_s_user)


def nearest_plans(
    problem: Problem, points: Sequence[Point], stack: Stack, *, overlap: Overlap, watch: Progress
) -> Iterator[Nearest]:
    """For each point the nearest plan. Raises `PlacementError` when the stack can run none of them at all."""
    nothing = True
    known: dict[int, list[tuple[Point, Shape]]] = {}
    for pp in sorted({point.pp for point in points} | {1}):
        for shape in filter(stack.runs, shapes(problem, pp)):
            watch.say(f"{stack.version}: DP {shape.dp}, TP {shape.tp}, PP {pp}")
            for point in _found(problem, shape, stack, sorted({point.batch for point in points}), overlap, watch):
                known.setdefault(point.batch, []).append((point, shape))
    for optimal in points:
        if optimal.batch in known:
            point, shape = max(known[optimal.batch], key=lambda each: _share(each[0], optimal))
            nothing = False
            launch = _launch(problem, point, shape)
            yield Nearest(stack=stack, optimal=optimal, point=point, shape=shape, command=stack.command(launch))
    if nothing:
        raise PlacementError(
            f"{stack.version} has no flags for a plan of {problem.name} that fits",
            where=f"{problem.cluster.gpus} × {problem.cluster.platform.name}",
            hint="allow more GPUs, or smaller batch sizes",
        )


def _found(
    problem: Problem, shape: Shape, stack: Stack, batches: Sequence[int], overlap: Overlap, watch: Progress
) -> tuple[Point, ...]:
    fixed = shape.fixed(problem)
    if not stack.partitions and shape.pp > 1:
        fixed = replace(fixed, partition=balanced(len(layer_labels(problem.blocks)), shape.pp))
    try:
        degrees = fixed.degrees(problem, None)
        found = search_egraph(
            problem, degrees, batches, overlap, frozenset(), watch, fixed=fixed, effort=EFFORT, every=True
        )
    except RooflangError:
        return ()
    if found.stopped_by == "interrupted":
        raise KeyboardInterrupt
    return found.points


def _launch(problem: Problem, point: Point, shape: Shape) -> Launch:
    caches = {tensor.dtype for tensor in problem.graph.leaves if tensor.role is Role.KV_CACHE}
    return Launch(
        shape=shape,
        requests=point.batch * point.pp,
        tokens=problem.context,
        layers=point.pp_partition,
        kv="fp8" if "fp8" in caches else "auto",
    )
