"""What a first look is worth by itself: at a limit, at Ctrl-C, or because no more was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from rooflang.errors import LimitReached
from rooflang.search.api import optimize
from rooflang.search.part import Part, Way
from rooflang.search.point import Result
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.workers import Workers

from .toys import perceptron

BATCHES = [8, 64, 512]


def run(**changes: Any) -> Result:
    given: dict[str, Any] = {"hardware": "b300", "gpus": 4, "batch": BATCHES}
    return optimize(perceptron(), **{**given, **changes})


def expires_after_the_look(monkeypatch: pytest.MonkeyPatch, refined: int = 0) -> None:
    """The clock strikes once all parts have been looked at, and so many plans have been asked for in earnest."""
    counted = iter(range(refined))
    best = Workers.best

    def asked(self: Workers, *arguments: Any) -> Any:
        result = best(self, *arguments)

        def at_last() -> Any:
            if next(counted, None) is None:
                monkeypatch.setattr(Progress, "expired", property(lambda self: True))
            return result()

        return at_last

    monkeypatch.setattr(Workers, "best", asked)
    monkeypatch.setattr(Progress, "stopped_by", property(lambda self: "time limit" if self.expired else "complete"))


def test_every_batch_size_has_a_point_with_its_bound() -> None:
    look, full = run(effort="look"), run()
    assert look.stopped_by == "complete" and look.inputs["effort"] == "look"
    assert "effort" not in full.inputs
    assert {point.batch for point in look.points} == {*BATCHES}
    assert look.evaluated.extracted == 0
    for point in look.points:
        assert point.bound_s is not None and point.bound_s <= point.sim.step_s
        better = [each for each in full.points if (each.batch, each.pp) == (point.batch, point.pp)]
        for each in better:
            assert point.bound_s <= each.sim.step_s <= point.sim.step_s * (1 + 1e-9)
    assert all(point.certificate["evaluated"]["verdict"] == "equal" for point in look.frontier)


def test_a_look_is_the_same_on_any_number_of_processes() -> None:
    one, two = run(effort="look", jobs=1), run(effort="look", jobs=2)
    assert [point.to_json() for point in one.points] == [point.to_json() for point in two.points]
    assert one.evaluated == two.evaluated


@pytest.mark.parametrize("refined", [0, 2])
def test_at_a_limit_every_batch_size_has_a_point(monkeypatch: pytest.MonkeyPatch, refined: int) -> None:
    look, full = run(effort="look"), run()
    expires_after_the_look(monkeypatch, refined)
    cut = run()
    assert cut.stopped_by == "time limit"
    assert {point.batch for point in cut.points} == {*BATCHES}
    step_s = {(point.batch, point.pp): point.sim.step_s for point in look.points}
    for point in cut.points:
        assert point.bound_s is not None and point.bound_s <= point.sim.step_s
        assert point.sim.step_s <= step_s.get((point.batch, point.pp), point.sim.step_s) * (1 + 1e-9)
    assert full.evaluated.configurations == cut.evaluated.configurations


def test_ctrl_c_keeps_what_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    look = run(effort="look", pp=1)
    monkeypatch.setattr(Part, "best", interrupt)
    stopped = run(pp=1)
    assert stopped.stopped_by == "interrupted"
    assert [point.sim for point in stopped.points] == [point.sim for point in look.points]


def test_ctrl_c_during_a_look_keeps_the_meshes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    costed, seen = Part._costed, []

    def interrupted(self: Part, space: Any) -> Any:
        seen.append(space)
        return costed(self, space) if len(seen) < 2 else interrupt()

    monkeypatch.setattr(Part, "_costed", interrupted)
    stopped = run()
    assert stopped.stopped_by == "interrupted"
    assert {point.batch for point in stopped.points} == {*BATCHES}
    assert all(point.bound_scope.endswith("of the 1 meshes that were looked at") for point in stopped.points)
    seen.append(None)
    with pytest.raises(KeyboardInterrupt):
        run()


def interrupt(*arguments: Any) -> Any:
    raise KeyboardInterrupt


def test_before_the_first_mesh_there_is_nothing() -> None:
    with pytest.raises(LimitReached, match="before its first point"):
        run(effort="look", time_limit_s=1e-9)


def test_what_is_too_large_gives_way_to_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the fastest plan known turns out not to fit, the next one is tried, down to those of the grid."""
    way = Way(problem=Problem.of(perceptron(), hardware="b300", gpus=4), batches=(64,), overlap="perfect")
    part = Part.of(way, 1, Progress())
    first = min(part.looked(), key=lambda one: one.step_s)
    simulated = Part._simulated

    def refuses(self: Part, known: Any) -> Any:
        return [one for one in simulated(self, known) if one.step_s > first.step_s * (1 + 1e-9)]

    monkeypatch.setattr(Part, "_simulated", refuses)
    (second,) = part.looked()
    assert second.step_s > first.step_s
