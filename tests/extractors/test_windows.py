"""Stages that are proved one by one, against the best plan of every partition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rooflang.errors import CapacityError
from rooflang.extractors import ilp, stages
from rooflang.extractors.chain import Chain
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.dual import dual
from rooflang.extractors.memory import fullest
from rooflang.extractors.polish import polished
from rooflang.extractors.task import Objective, Stages, Task
from rooflang.ir import Graph, GraphBuilder
from rooflang.place.grid import layer_labels, partition

from .graphs import Case
from .test_memory import cached
from .test_simulation import agrees


def uneven(*, layers: int = 5) -> Graph:
    """Layers of two kinds, narrow and wide, after a table."""
    g = GraphBuilder("uneven", batch=64, hidden=512, ffn=1024, wide=4096)
    g.block = "embed"
    x = g.op("x", "matmul", [g.input("rows", "batch wide"), g.weight("table", "wide hidden")], "batch hidden")
    for layer in range(layers):
        g.block = n = f"layers.{layer}"
        inner = "wide" if layer % 3 == 1 else "ffn"
        up = g.op(f"{n}.up", "matmul", [x, g.weight(f"{n}.w1", f"hidden {inner}")], f"batch {inner}")
        x = g.op(f"{n}.down", "matmul", [up, g.weight(f"{n}.w2", f"{inner} hidden")], "batch hidden")
    return g.build(x)


GRAPHS = {"cached": cached(layers=4), "uneven": uneven()}


def tight(graph: str, count: int, room: float, objective: Objective) -> Task:
    """A task of so many stages, with room in each HBM for that part of its share of all leaves."""
    case = Case.of(GRAPHS[graph], mesh=(2,), stages=count, hardware="gh200", saturate=True)
    both = CostedGraph.of(case.blocks, case.frozen, case.cost, tiers=("hbm", "dram"))
    held = sum(leaf.bytes(case.graph.sizes) for leaf in case.graph.leaves)
    task = case.task(costed=both, objective=objective, stages=next(partitions(case, count)))
    return replace(task, reserve_bytes=task.capacity_bytes - room * held / count)


def partitions(case: Case, count: int) -> Iterator[Stages]:
    layers = len(layer_labels(case.blocks))
    for cuts in combinations(range(1, layers), count - 1):
        yield partition(case.blocks, [after - before for before, after in pairwise((0, *cuts, layers))])


def best_of_all(task: Task, graph: str) -> float:
    """The objective of the best plan of any partition."""
    case = Case.of(GRAPHS[graph], mesh=(2,), stages=len(task.stages), hardware="gh200", saturate=True)
    values = [math.inf]
    for each in partitions(case, len(task.stages)):
        with suppress(CapacityError):
            values.append(ilp.extract(replace(task, stages=each), gap=1e-4).value_s)
    return min(values)


@settings(max_examples=10, deadline=None)
@example(graph="uneven", count=3, room=0.39357615052431805, objective="sum")  # the solver makes up numbers
@given(
    graph=st.sampled_from(sorted(GRAPHS)),
    count=st.integers(2, 3),
    room=st.floats(0.15, 0.9),
    objective=st.sampled_from(["max", "sum"]),
)
def test_no_partition_is_faster_than_the_bound(graph: str, count: int, room: float, objective: Objective) -> None:
    task = tight(graph, count, room, objective)
    best_s = best_of_all(task, graph)
    try:
        found = stages.extract(task, gap=1e-3)
    except CapacityError:
        assert math.isinf(best_s)
        return
    agrees(replace(task, stages=found.stages), found)
    assert found.bound_s <= best_s * (1.0 + 1e-9)
    assert found.value_s <= best_s * 1.05


@pytest.mark.parametrize("graph", sorted(GRAPHS))
def test_one_plan_per_kind_takes_longer_than_a_mixture(graph: str) -> None:
    """Where a whole kind's leaves have to leave HBM for a few bytes, the dual knows only of those few."""
    task = tight(graph, 2, 0.35, "max")
    mixed_s, _ = Chain(task=task).bound(dual(task.costed, task.at, None), 10**6)
    found = stages.extract(task, gap=1e-3)
    assert found.value_s > 1.1 * mixed_s
    assert found.gap < 0.5 * (found.value_s / mixed_s - 1.0)


def test_what_no_stage_runs_may_be_left_without_a_plan() -> None:
    """A stage that is looked at by itself need not have blocks of every kind."""
    task = tight("uneven", 2, 0.5, "max")
    labels = [label for stage in task.stages for label in stage]
    names = {task.costed.blocks.kind_of[label] for label in labels[:1]}
    alone = replace(task, stages=((labels[0],), ()), reserve_bytes=0.0)
    found = ilp.extract(alone).decisions
    bare = replace(found, choices={name: choice if name in names else {} for name, choice in found.choices.items()})
    stages_s = [(1.0, 1.0)] * len(alone.slowest)
    assert polished(alone, bare, stages_s, 0.0).choices.keys() == found.choices.keys()
    assert fullest(alone, bare).share == fullest(alone, found).share


def test_the_dual_sorts_out_most_stages_before_any_programme(monkeypatch: pytest.MonkeyPatch) -> None:
    proved, asked = ilp.proved, list[int]()

    def counted(*given: Any, nodes: int, **named: Any) -> Any:
        asked.append(nodes)
        return proved(*given, nodes=nodes, **named)

    monkeypatch.setattr(ilp, "proved", counted)
    task = tight("cached", 2, 0.35, "max")
    found = stages.extract(task, gap=1e-3)
    assert asked[0] == 0 and any(asked)
    assert found.gap < 0.06
