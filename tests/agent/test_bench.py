"""A bench answers with bounded data, counts, and keeps to its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflang.agent.answers import LONGEST_ARGUMENT, error_data, page_of, short
from rooflang.agent.bench import Bench
from rooflang.agent.session import Session
from rooflang.errors import CapacityError, RefusedError, RooflangError, ValueRangeError

GRAPH = Path(__file__).with_name("mcp_graph.rl")


@pytest.fixture
def bench() -> Bench:
    return Bench(Session.start(GRAPH, hardware="b300", gpus=8), budget=3)


TP = "split_kernel up dim=ffn axis=x\nsplit_kernel down dim=ffn axis=x"


def test_describe_names_what_can_be_done(bench: Bench) -> None:
    told = bench.describe()
    assert told["gpus"] == 8
    assert "split_kernel" in told["primitives"] and "tensor_parallel" in told["macros"]
    assert told["simulations_left"] == 3


def test_lines_are_taken_together_or_not_at_all(bench: Bench) -> None:
    before = bench.session.state_bytes()
    with pytest.raises(RefusedError):
        bench.apply(TP + "\nmerge_gather_broadcast up axis=x")
    assert bench.session.state_bytes() == before
    assert bench.counts.refused == 1
    with pytest.raises(RooflangError):
        bench.apply("split_kernl up")
    assert bench.counts.failed == 1
    assert bench.apply(TP)["taken"] == 2
    assert bench.counts.accepted == 2


def test_simulations_are_counted_once_a_plan_and_end_with_the_budget(bench: Bench) -> None:
    whole = bench.simulate()
    assert bench.simulate() == whole
    assert bench.counts.simulations == 1
    bench.apply(TP)
    assert bench.simulate()["step_s"] < whole["step_s"]
    bench.undo(1)
    bench.simulate()
    bench.apply("dup_kernel down axis=x")
    with pytest.raises(ValueRangeError, match="all 3 simulations"):
        bench.simulate()
    report = bench.report()
    assert report["simulations"] == 3
    assert "split_kernel down" in report["journal"]
    assert report["best"]["step_s"] == bench.best[0]  # type: ignore[index]


def test_what_tells_the_time_of_a_plan_is_a_simulation(bench: Bench) -> None:
    bench.simulate()
    bench.explain()
    assert bench.counts.simulations == 1
    bench.apply(TP)
    bench.explain()
    assert bench.counts.simulations == 2
    assert bench.simulate()["best_step_s"] == bench.best[0]  # type: ignore[index]
    for number in range(3):
        bench.branch(str(number))
        bench.undo(1)
        if number == 0:
            bench.explain()
        bench.apply("split_kernel down dim=hidden axis=x")
        with pytest.raises(ValueRangeError, match="are spent"):
            bench.explain()
        bench.branch("main")


def test_a_plan_that_does_not_fit_costs_once_and_is_not_the_best() -> None:
    bench = Bench(Session.start("llama-3.1-405b", hardware="h100", gpus=8, context=1024), budget=1)
    for judge in (bench.simulate, bench.simulate, bench.explain):
        with pytest.raises(CapacityError):
            judge()
    assert bench.counts.simulations == 1
    assert bench.report()["best"] is None


def test_nothing_changes_when_the_journal_cannot_be_kept() -> None:
    def full(_: Session) -> None:
        raise RooflangError("no space is left")

    bench = Bench(Session.start(GRAPH, hardware="b300", gpus=8))
    bench.apply(TP)
    bench._watch = full
    for change in (lambda: bench.apply("dup_kernel down axis=x"), lambda: bench.undo(1)):
        with pytest.raises(RooflangError, match="no space"):
            change()
    assert bench.describe()["actions_taken"] == bench.counts.accepted == 2


def test_branches_go_their_own_ways(bench: Bench) -> None:
    bench.apply(TP)
    bench.branch("other")
    bench.undo(2)
    assert bench.branch("main")["actions_taken"] == 2
    assert bench.branch("other")["actions_taken"] == 0
    for name in ("  ", "a\nb", "x" * 61):
        with pytest.raises(ValueRangeError):
            bench.branch(name)


def test_answers_are_bounded(bench: Bench) -> None:
    assert len(bench.actions(size=2)["actions"]) == 2
    assert bench.actions("split_kernel up")["total"] < bench.actions()["total"]
    assert bench.show("down")["total"] < bench.show()["total"]
    for wrong in ({"page": 0}, {"page": 10**6}, {"size": 0}, {"size": 10**9}):
        with pytest.raises(ValueRangeError):
            bench.actions(**wrong)
    with pytest.raises(ValueRangeError, match="characters"):
        bench.check("x" * (LONGEST_ARGUMENT + 1))
    with pytest.raises(ValueRangeError, match="control"):
        bench.check("split_kernel \x00")
    assert len(short("y" * 10_000)) == 500


def test_pages() -> None:
    entries = list(range(7))
    assert page_of(entries, 3, 3) == ([6], {"page": 3, "pages": 3, "total": 7})
    assert page_of([], 1, 3) == ([], {"page": 1, "pages": 1, "total": 0})


def test_errors_are_data() -> None:
    error = RefusedError("not-partial", "it is whole", where="up", hint="split it")
    assert error_data(error) == {
        "error": "refused",
        "what": "it is whole",
        "refusal": "not-partial",
        "where": "up",
        "hint": "split it",
    }


def test_primitives_are_documented(bench: Bench) -> None:
    told = bench.primitive("split_kernel")
    assert told["why_sound"] and told["preconditions"]
    with pytest.raises(RooflangError):
        bench.primitive("split")
