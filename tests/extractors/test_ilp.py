"""Extraction against an oracle that tries every plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.errors import CapacityError, LimitReached, PlacementError
from rooflang.extractors import greedy
from rooflang.extractors.bounds import quick_bounds_s
from rooflang.extractors.ilp import extract
from rooflang.extractors.memory import fullest
from rooflang.extractors.solver import Solver
from rooflang.extractors.sweep import Sweep
from rooflang.extractors.task import Objective, Task
from rooflang.ir.layout import Mode

from .graphs import Case, fan, residual, two_layers
from .oracle import Oracle, best_value

#: name → (graph, mesh, size of a domain)
CASES = {
    "two layers": (two_layers(), (4,), 4),
    "two layers across domains": (two_layers(batch=64, hidden=1024), (8,), 4),
    "two layers on two axes": (two_layers(hidden=64, ffn=64, layers=1), (2, 2), 4),
    "residual": (residual(layers=2), (4,), 4),
    "residual on two axes": (residual(batch=16, hidden=64, ffn=64), (2, 2), 2),
    "fan": (fan(), (4,), 4),
    "fan across domains": (fan(batch=256, hidden=2048, wide=512), (8,), 4),
}
OBJECTIVES: tuple[Objective, ...] = ("max", "sum")


@cache
def case_of(name: str) -> Case:
    graph, mesh, domain = CASES[name]
    return Case.of(graph, mesh=mesh, domain=domain)


@cache
def oracle_of(name: str) -> Oracle:
    return case_of(name).oracle()


@cache
def best_of(name: str, objective: str) -> float:
    return best_value(oracle_of(name), [case_of(name).blocks.counts()], objective)


@pytest.fixture
def no_dual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave everything to the integer programme."""
    for name in ("run", "refine", "squeeze"):
        monkeypatch.setattr(Sweep, name, lambda self, *limit: None)
    monkeypatch.setattr("rooflang.extractors.ilp.branched", lambda *_: None)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_that_of_all_plans(name: str, objective: Objective) -> None:
    best = best_of(name, objective)
    found = extract(case_of(name).task(objective=objective), gap=0.0)
    assert found.value_s == pytest.approx(best, rel=1e-6)
    assert best * (1 - 1e-3) <= found.bound_s <= best * (1 + 1e-9)
    assert found.status == "optimal"


@pytest.mark.usefixtures("no_dual")
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", CASES)
def test_the_programme_alone_finds_it_too(name: str, objective: Objective) -> None:
    best = best_of(name, objective)
    found = extract(case_of(name).task(objective=objective), gap=0.0)
    assert found.value_s == pytest.approx(best, rel=1e-6)
    assert best * (1 - 1e-3) <= found.bound_s <= best * (1 + 1e-9)
    assert found.rows > 0 and found.columns > found.binaries > 0


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", CASES)
def test_bounds_and_heuristics_lie_on_their_sides(name: str, objective: Objective) -> None:
    best, task = best_of(name, objective), case_of(name).task(objective=objective)
    quick = float(quick_bounds_s(task)[0])
    found = greedy.extract(task)
    assert 0.0 < quick <= best * (1 + 1e-9)
    assert found.bound_s <= best * (1 + 1e-9) <= found.value_s * (1 + 2e-9)
    assert found.value_s <= best * 1.2
    assert found.status == "heuristic"


@settings(max_examples=25)
@given(
    st.sampled_from([two_layers, residual]),
    st.sampled_from([1, 2, 6, 8, 64, 4096]),
    st.sampled_from([24, 64, 1024]),
    st.sampled_from([32, 512, 4096]),
    st.sampled_from([(2, 2), (3, 3), (4, 2), (8, 4)]),
    st.sampled_from(["b300", "gh200"]),
    st.sampled_from(OBJECTIVES),
)
def test_random_graphs(
    build: type, batch: int, hidden: int, ffn: int, mesh: tuple[int, int], hardware: str, objective: Objective
) -> None:
    graph = build(batch, hidden, ffn, layers=2)
    case = Case.of(graph, mesh=mesh[:1], domain=mesh[1], hardware=hardware)
    best = best_value(case.oracle(), [case.blocks.counts()], objective)
    found = extract(case.task(objective=objective), gap=0.0)
    assert found.value_s == pytest.approx(best, rel=1e-6)
    assert best * (1 - 1e-3) <= found.bound_s <= found.value_s


# -- stages
# -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("cut", [2, 3])
def test_one_plan_serves_all_stages(objective: Objective, cut: int) -> None:
    case = Case.of(two_layers(batch=16, layers=3), mesh=(4,), stages=2)
    sequence = case.blocks.sequence
    stages = (sequence[:cut], sequence[cut:])
    task = case.task(objective=objective, stages=stages)
    (send,) = task.loads[0].sends

    def sends(boundary: Mapping[int, tuple[str, ...]]) -> list[float]:
        return [float(case.cost.send(send.tensor, boundary[send.group], 0).exposed_s), 0.0]

    counts = [case.blocks.counts(labels) for labels in stages]
    best = best_value(case.oracle(), counts, objective, sends=sends)
    found = extract(task, gap=0.0)
    assert found.value_s == pytest.approx(best, rel=1e-6)
    assert best * (1 - 1e-3) <= found.bound_s <= found.value_s


def test_a_stage_within_another_one_cannot_be_the_slowest() -> None:
    case = Case.of(two_layers(layers=5), mesh=(2,), stages=3)
    s = case.blocks.sequence
    task = case.task(stages=(s[:2], s[2:4], s[4:]))
    assert [load.counts for load in task.slowest] == [case.blocks.counts(s[:2]), case.blocks.counts(s[2:4]),
                                                      case.blocks.counts(s[4:])]  # fmt: skip
    task = case.task(stages=(s[:3], s[3:5], s[5:]))
    assert [load.counts for load in task.slowest] == [case.blocks.counts(s[:3]), case.blocks.counts(s[5:])]


# -- what a task fixes
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("spec", ["batch", "hidden", "R"])
def test_a_fixed_boundary_stays(objective: Objective, spec: str) -> None:
    case = case_of("residual")
    (group,) = set(case.blocks.port_group.values())
    best = best_value(oracle_of("residual"), [case.blocks.counts()], objective, fixed={group: (spec,)})
    found = extract(case.task(objective=objective, boundary={group: (spec,)}), gap=0.0)
    assert found.boundary == {group: (spec,)}
    assert found.value_s == pytest.approx(best, rel=1e-6)
    assert found.value_s >= best_of("residual", objective) * (1 - 1e-9)


def test_a_boundary_that_no_block_can_have_is_refused() -> None:
    case = case_of("residual")
    (group,) = set(case.blocks.port_group.values())
    with pytest.raises(PlacementError, match="no plan keeps to what is fixed"):
        extract(case.task(boundary={group: ("ffn",)}))


def _whole_products(kind: str, mode: Mode) -> bool:
    return mode.op.kind != "matmul" or mode.out == ("batch",)


def test_only_modes_that_are_kept_are_used() -> None:
    case = case_of("two layers")
    found = extract(case.task(keep=_whole_products), gap=0.0)
    made = [mode.out for plan in found.block_plans.values() for mode in plan.modes.values() if mode.op.kind == "matmul"]
    assert made == [("batch",)] * 3
    frozen = {
        name: replace(block, modes=tuple(m for m in block.modes if _whole_products(name, m)))
        for name, block in case.frozen.items()
    }
    best = best_value(replace(case, frozen=frozen).oracle(), [case.blocks.counts()], "max")
    assert found.value_s == pytest.approx(best, rel=1e-6)


def test_a_value_that_nothing_may_make_is_named() -> None:
    case = case_of("two layers")
    with pytest.raises(PlacementError, match=r"no layout is left in which layers\.0\.up can be made"):
        extract(case.task(keep=lambda kind, mode: mode.op.name != "layers.0.up"))


# -- memory
# -------------------------------------------------------------------------------------------------------------


def _tight(task: Task, spare: float) -> Task:
    """The task with that part of what its best plan needs."""
    need = fullest(task, extract(task, gap=0.0).decisions).bytes
    return replace(task, reserve_bytes=task.capacity_bytes - spare * need)


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("spare", [0.99, 0.8])
def test_memory_changes_the_plan(
    objective: Objective, spare: float, dual: bool, request: pytest.FixtureRequest
) -> None:
    # Requests are many and weights small: cutting requests sends nothing, but every rank holds all weights.
    case = Case.of(two_layers(batch=4096, hidden=512, ffn=512, layers=2), mesh=(4,))
    free = case.task(objective=objective)
    task = _tight(free, spare)
    if not dual:
        request.getfixturevalue("no_dual")
    best = best_value(case.oracle(), [case.blocks.counts()], objective, capacity_bytes=task.capacity_bytes)
    found = extract(task, gap=0.0)
    assert found.value_s == pytest.approx(best, rel=1e-6)
    assert found.value_s > extract(free, gap=0.0).value_s
    assert found.bound_s <= best * (1 + 1e-9)
    assert fullest(task, found.decisions).bytes <= task.capacity_bytes


@pytest.mark.parametrize("dual", [True, False])
def test_what_fits_at_rest_but_not_at_work_is_refused(dual: bool, request: pytest.FixtureRequest) -> None:
    case = Case.of(two_layers(batch=4096, hidden=512, ffn=512, layers=2), mesh=(4,))
    task = _tight(case.task(), 0.6)
    if not dual:
        request.getfixturevalue("no_dual")
    assert best_value(case.oracle(), [case.blocks.counts()], "max", capacity_bytes=task.capacity_bytes) == float("inf")
    with pytest.raises(CapacityError, match="operands and output of"):
        extract(task)


def test_what_cannot_fit_says_by_how_much() -> None:
    task = case_of("two layers").task()
    least = _tight(task, 0.01)
    with pytest.raises(CapacityError) as caught:
        extract(least)
    assert "the leanest plan found fills stage 0 with" in caught.value.what
    assert "more than fits" in caught.value.what
    assert "table as vocab" in caught.value.what or "table as hidden" in caught.value.what
    with pytest.raises(CapacityError):
        greedy.extract(least)


# -- limits
# -------------------------------------------------------------------------------------------------------------


def test_when_the_solvers_time_is_up_there_is_a_plan_and_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("two layers on two axes")
    task = case.task()
    solve = Solver.solve
    monkeypatch.setattr(Solver, "solve", lambda *given, **named: solve(*given, **{**named, "time_limit_s": 0.0}))
    found = extract(task, gap=-1.0)
    best = best_of("two layers on two axes", "max")
    assert found.status == "limit"
    assert 0.0 < found.bound_s <= best * (1 + 1e-9) <= found.value_s * (1 + 2e-9)


@pytest.mark.usefixtures("no_dual")
def test_no_time_and_no_plan_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = Solver.solve
    monkeypatch.setattr(Solver, "solve", lambda *given, **named: solve(*given, **{**named, "time_limit_s": 0.0}))
    with pytest.raises(LimitReached, match="limit was reached"):
        extract(case_of("two layers on two axes").task())


def test_a_cutoff_ends_it_early() -> None:
    best = best_of("two layers", "max")
    found = extract(case_of("two layers").task(), gap=0.0, cutoff_s=best / 2)
    assert found.status == "cut off"
    assert found.bound_s >= best / 2


def test_equal_tasks_have_equal_results() -> None:
    case = Case.of(residual(batch=16, hidden=64, ffn=64), mesh=(2, 2), domain=2)
    again = Case.of(residual(batch=16, hidden=64, ffn=64), mesh=(2, 2), domain=2)
    one, other = (extract(c.task(), gap=0.0) for c in (case, again))
    assert replace(one, seconds=0.0) == replace(other, seconds=0.0)
