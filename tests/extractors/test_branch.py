"""Branch and bound against an oracle that tries every plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.errors import LimitReached
from rooflang.extractors import branch
from rooflang.extractors.branch import branched
from rooflang.extractors.fronts import undominated
from rooflang.extractors.sweep import Sweep
from rooflang.extractors.task import Task

from .graphs import Case, residual, two_layers
from .oracle import best_value

LIMIT = 1_000_000


def _swept(task: Task) -> Sweep:
    """A sweep of one weight only."""
    sweep = Sweep.of(task, limit=LIMIT, gap=0.0)
    sweep.probe()
    return sweep


@settings(max_examples=25)
@given(
    st.sampled_from([two_layers, residual]),
    st.sampled_from([1, 8, 64, 1024, 4096]),
    st.sampled_from([24, 64, 1024]),
    st.sampled_from([32, 512, 4096]),
    st.sampled_from([((4,), 2), ((8,), 4)]),
    st.sampled_from([1, 3, 40]),
)
def test_bounds_stay_below_all_plans_however_many_branches(
    build: type, batch: int, hidden: int, ffn: int, mesh: tuple[tuple[int, ...], int], branches: int
) -> None:
    case = Case.of(build(batch, hidden, ffn, layers=1), mesh=mesh[0], domain=mesh[1])
    best = best_value(case.oracle(), [case.blocks.counts()], "max")
    sweep = _swept(case.task())
    before = sweep.bound_s
    branched(sweep, branches)
    assert before <= sweep.bound_s <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= sweep.value_s


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("batch", [8, 32])
def test_the_sum_of_c_and_n_is_closed_where_tables_of_all_layouts_are_too_large(batch: int, stages: int) -> None:
    """No mixture is better than a plan, so that the bound under the weights of C + N is what the best plan takes."""
    case = Case.of(two_layers(batch=batch, layers=3), mesh=(8,), domain=4, stages=stages)
    sequence = case.blocks.sequence
    task = case.task(stages=(sequence,) if stages == 1 else (sequence[:2], sequence[2:]), objective="sum")
    sweep = Sweep.of(task, limit=1, gap=0.0)
    sweep.probe()
    assert not sweep.exact and sweep.bound_s < sweep.value_s * (1 - 1e-3)
    branched(sweep, 1)
    best = best_value(
        case.oracle(),
        [case.blocks.counts(labels) for labels in task.stages],
        "sum",
        sends=lambda boundary: [
            sum(float(case.cost.send(send.tensor, boundary[send.group], 0).exposed_s) for send in load.sends)
            for load in task.loads
        ],
    )
    assert sweep.bound_s == pytest.approx(best, rel=1e-9) == sweep.value_s


@pytest.mark.parametrize("cut", [2, 3])
def test_the_slowest_stage_and_what_it_sends_count(cut: int) -> None:
    case = Case.of(two_layers(batch=16, layers=3), mesh=(4,), stages=2)
    sequence = case.blocks.sequence
    task = case.task(stages=(sequence[:cut], sequence[cut:]))
    (send,) = task.loads[0].sends
    best = best_value(
        case.oracle(),
        [case.blocks.counts(labels) for labels in task.stages],
        "max",
        sends=lambda boundary: [float(case.cost.send(send.tensor, boundary[send.group], 0).exposed_s), 0.0],
    )
    sweep = _swept(task)
    branched(sweep, 60)
    assert sweep.bound_s <= best * (1 + 1e-9) <= sweep.value_s * (1 + 2e-9)


def test_what_mixtures_leave_open_is_closed() -> None:
    closed = 0
    for batch, hidden, ffn in ((8, 64, 512), (64, 64, 512), (64, 1024, 32), (1024, 64, 512)):
        case = Case.of(two_layers(batch, hidden, ffn, layers=2), mesh=(8,), domain=4)
        sweep = Sweep.of(case.task(), limit=LIMIT, gap=1e-4)
        sweep.run()
        left = sweep.value_s / sweep.bound_s - 1.0
        branched(sweep, 200)
        closed += left > 1e-3 and sweep.value_s <= sweep.bound_s * (1.0 + 1e-3)
    assert closed


def test_a_fixed_boundary_stays() -> None:
    case = Case.of(residual(layers=2), mesh=(4,))
    (group,) = set(case.blocks.port_group.values())
    best = best_value(case.oracle(), [case.blocks.counts()], "max", fixed={group: ("hidden",)})
    sweep = _swept(case.task(boundary={group: ("hidden",)}))
    branched(sweep, 60)
    assert sweep.best is not None and sweep.best.boundary == {group: ("hidden",)}
    assert sweep.bound_s <= best * (1 + 1e-9) <= sweep.value_s * (1 + 2e-9)


def test_equal_tasks_have_equal_branches() -> None:
    found = []
    for _ in range(2):
        sweep = _swept(Case.of(two_layers(64, 64, 512, layers=2), mesh=(8,), domain=4).task())
        branched(sweep, 10)
        found.append((sweep.bound_s, sweep.value_s))
    assert found[0] == found[1]


def test_too_many_layouts_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = _swept(Case.of(two_layers(layers=2), mesh=(4,)).task())
    for name in ("_MOST", "_LARGEST"):
        with monkeypatch.context() as patch:
            patch.setattr(branch, name, 1)
            with pytest.raises(LimitReached, match="too many layouts"):
                branched(replace(sweep), 10)


def test_of_equals_the_first_one_stays() -> None:
    items = [(1.0, 3.0, "a"), (1.0, 3.0, "b"), (2.0, 3.0, "c"), (3.0, 1.0, "d"), (0.5, 4.0, "e")]
    assert [name for _, _, name in undominated(items)] == ["e", "a", "d"]
