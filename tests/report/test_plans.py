"""Plans in words: each distinct one once, with the batch sizes that use it."""

from __future__ import annotations

from rooflang.report.frontier import show_work
from rooflang.report.plans import number_plans, show_mesh, show_plan, show_plans
from rooflang.search.point import Evaluated, Point
from rooflang.sim.result import SimResult

SIM = SimResult(
    overlap="none",
    step_s=1.0,
    tok_s_gpu=1.0,
    tok_s_user=1.0,
    stages=(),
    peak_bytes=1,
    capacity_bytes=1,
    largest=(),
    groups_s={},
    bottleneck="memory",
    events=1,
    operators=1,
)


def point(batch: int, plan: str, *, origin: str = "grid", partition: tuple[int, ...] = (4,)) -> Point:
    pp = len(partition)
    return Point(
        batch=batch, pp=pp, pp_partition=partition, mesh=(2, 4), sim=SIM, plan=plan, certificate={}, origin=origin
    )


ALIKE = "attention: batch→8; experts: expert→8; head: batch→8; pipeline 1"
OTHER = "attention: head→8; pipeline 1"


def test_groups_that_are_cut_alike_share_a_line() -> None:
    assert show_plan(point(1, ALIKE), ["grid"]).splitlines() == [
        "  attention, head: batch→8",
        "  experts: expert→8",
        "  pipeline: 1 stage",
        "  found by: grid",
    ]


def test_each_plan_is_told_once_with_its_batches_and_origins() -> None:
    points = [point(1, ALIKE, origin="ilp"), point(2, OTHER), point(4096, ALIKE, origin="greedy")]
    text = show_plans(points)
    assert list(number_plans(points).values()) == [1, 2]
    assert "plan 1, on a mesh of 2x4, at batch 1, 4k\n" in text
    assert "found by: greedy; ilp" in text
    assert text.count("attention, head: batch→8") == 1


def test_another_partition_is_another_plan() -> None:
    points = [point(1, "a: b→2; pipeline 2", partition=(2, 2)), point(1, "a: b→2; pipeline 2", partition=(1, 3))]
    text = show_plans(points)
    assert "pipeline: 2 stages of 2x2 layers" in text
    assert "pipeline: 2 stages of 1,3 layers" in text


def test_a_group_name_with_the_signs_of_the_plan_in_it_is_still_shown() -> None:
    assert ["a;", "b:", "c:", "batch→2"][-1] in show_plan(point(1, "a; b: c: batch→2; pipeline 1"), ["grid"])


def test_what_names_no_group_stands_alone() -> None:
    text = show_plan(point(1, "attention: batch→8; 3 leaves in DRAM; pipeline 1"), ["ilp"])
    assert text.splitlines()[1] == "  3 leaves in DRAM"


def test_a_mesh_of_one_gpu() -> None:
    assert show_mesh(()) == "1"
    assert show_mesh((8, 4)) == "8x4"


def test_work_in_words_leaves_out_what_was_not_done() -> None:
    work = Evaluated(configurations=1234, screened_out=1200, simulated=34)
    assert show_work(work) == "1,234 configurations, 1,200 screened out by cost, 34 simulated"
    assert show_work(Evaluated()) == "nothing"
