"""Partitions against trying all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.extractors import ilp, stages
from rooflang.extractors.chain import Chain, cheapest
from rooflang.extractors.memory import fullest
from rooflang.extractors.task import Objective
from rooflang.ir import Graph, GraphBuilder
from rooflang.place.grid import balanced, layer_labels, partition

from .graphs import Case


@given(st.integers(1, 6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_cheapest_partition_is_that_of_all(layers: int, count: int, random: object) -> None:
    count = min(layers, count)
    draw = random.randint  # type: ignore[attr-defined]
    tables = [
        np.array([[float(draw(0, 9)) for _ in range(layers + 1)] for _ in range(layers + 1)]) for _ in range(count)
    ]
    best = min(
        max(table[i, j] for table, (i, j) in zip(tables, pairwise((0, *cuts, layers))))
        for cuts in combinations(range(1, layers), count - 1)
    )
    value, found = cheapest(tables)
    ends = [0, *np.cumsum(found).tolist()]
    assert value == best == max(table[i, j] for table, (i, j) in zip(tables, pairwise(ends)))
    assert (sum(found), min(found) >= 1, len(found)) == (layers, True, count)


def uneven(batch: int = 64, *, layers: int = 6) -> Graph:
    """Equal layers after a start that is as much work as three of them."""
    g = GraphBuilder("uneven", batch=batch, hidden=512, wide=6144, vocab=1024)
    g.block = "embed"
    x = g.op("x", "matmul", [g.input("rows", "batch wide"), g.weight("table", "wide hidden")], "batch hidden")
    for layer in range(layers):
        g.block = name = f"layers.{layer}"
        up = g.op(f"{name}.up", "matmul", [x, g.weight(f"{name}.w1", "hidden vocab")], "batch vocab")
        x = g.op(f"{name}.down", "matmul", [up, g.weight(f"{name}.w2", "vocab hidden")], "batch hidden")
    g.block = "head"
    return g.build(g.op("out", "rms_norm", [x], "batch hidden", over="hidden"))


def busy_start(*, layers: int = 6) -> Graph:
    """Equal layers after a start that takes time and no weights."""
    g = GraphBuilder("busy start", batch=64, hidden=512, ffn=1024)
    g.block = "start"
    x = g.input("rows", "batch hidden")
    for number in range(150):
        x = g.op(f"x{number}", "activation", [x], "batch hidden")
    for layer in range(layers):
        g.block = name = f"layers.{layer}"
        up = g.op(f"{name}.up", "matmul", [x, g.weight(f"{name}.w1", "hidden ffn")], "batch ffn")
        x = g.op(f"{name}.down", "matmul", [up, g.weight(f"{name}.w2", "ffn hidden")], "batch hidden")
    return g.build(x)


def every(case: Case, count: int, objective: Objective) -> dict[tuple[int, ...], float]:
    """The best objective of every partition."""
    layers = len(layer_labels(case.blocks))
    out = {}
    for cuts in combinations(range(1, layers), count - 1):
        counts = tuple(b - a for a, b in pairwise((0, *cuts, layers)))
        task = case.task(stages=partition(case.blocks, counts), objective=objective)
        out[counts] = ilp.extract(task, gap=0.0).value_s
    return out


@pytest.mark.parametrize("objective", ["max", "sum"])
@pytest.mark.parametrize("count", [2, 3])
def test_the_best_partition_is_found_and_bounded(count: int, objective: Objective) -> None:
    case = Case.of(uneven(), mesh=(2,), stages=count)
    values = every(case, count, objective)
    even = balanced(6, count)
    found = stages.extract(case.task(stages=partition(case.blocks, even), objective=objective), gap=0.0)
    assert found.value_s == pytest.approx(min(values.values()), rel=1e-6)
    assert found.value_s < values[even]
    assert found.bound_s <= min(values.values()) * (1 + 1e-9)
    assert found.bound_s >= (0.99 if objective == "max" else 1 - 1e-9) * found.value_s
    assert sum(len(labels) for labels in found.stages) == len(case.blocks.sequence)


def test_the_bound_is_that_of_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the best partition is not found, the bound is below it all the same."""
    monkeypatch.setattr(stages, "_TURNS", 1)
    monkeypatch.setattr(ilp, "BRANCHES", 0)
    case = Case.of(uneven(), mesh=(2,), stages=2)
    found = stages.extract(case.task(stages=partition(case.blocks, balanced(6, 2))))
    least_s = min(every(case, 2, "max").values())
    assert found.value_s > 1.01 * least_s
    assert found.bound_s <= least_s * (1 + 1e-9)


def test_memory_moves_layers_away_from_a_full_stage() -> None:
    case = Case.of(busy_start(), mesh=(2,), stages=2)
    task = case.task(stages=partition(case.blocks, (3, 3)))
    found = ilp.extract(task)
    _, counts = Chain(task=task).best(found.decisions)
    assert counts[0] < counts[1]

    def need(layers: tuple[int, ...]) -> float:
        return fullest(replace(task, stages=partition(case.blocks, layers)), found.decisions).bytes

    tight = replace(task, reserve_bytes=task.capacity_bytes - 0.999 * need(counts))
    value, moved = Chain(task=tight).best(found.decisions)
    assert moved != counts and np.isfinite(value)
    assert need(moved) <= tight.capacity_bytes < need(counts)
    full = replace(task, reserve_bytes=task.capacity_bytes)
    assert Chain(task=full).best(found.decisions)[0] == np.inf
    lost = replace(found.decisions, choices={name: {} for name in found.decisions.choices})
    assert Chain(task=task).best(lost)[0] == np.inf


def test_one_stage_is_an_extraction() -> None:
    case = Case.of(uneven(), mesh=(2,))
    assert stages.extract(case.task()).value_s == ilp.extract(case.task()).value_s


def test_chains_send_what_later_layers_read() -> None:
    case = Case.of(uneven(), mesh=(2,), stages=2)
    chain = Chain(task=case.task(stages=partition(case.blocks, (3, 3))))
    assert [len(sends) for sends in chain.sends] == [0, 1, 1, 1, 1, 1, 0]
    assert chain.layers[0] == ("embed", "layers.0") and chain.layers[-1] == ("layers.5", "head")
    assert chain.sends[3][0].tensor.dims == ("batch", "hidden")


def test_branches_over_partitions_keep_to_a_fixed_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_TURNS", 1)
    case = Case.of(uneven(), mesh=(2,), stages=2)
    free = stages.extract(case.task(stages=partition(case.blocks, balanced(6, 2))), gap=0.0)
    group = max(free.boundary, key=lambda each: len(case.task().costed.borders[each]))
    for other in sorted({"R", "batch", "hidden"} - {*free.boundary[group]}):
        task = case.task(stages=partition(case.blocks, balanced(6, 2)), boundary={group: (other,)})
        found = stages.extract(task, gap=0.0)
        assert found.boundary[group] == (other,)
        assert found.value_s >= free.value_s
