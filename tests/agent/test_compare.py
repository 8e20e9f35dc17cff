"""Everybody beside each other, judged by the same simulation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rooflang.agent import Session
from rooflang.agent.compare import Comparison, Contender, compare
from rooflang.agent.derivable import Verdict
from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.ir.text import read
from rooflang.search.progress import Progress

from .graphs import layers, mlp

HERE = Path(__file__).parent
GRAPH = HERE / "mcp_graph.rl"


def named(found: Comparison) -> dict[str, Contender]:
    return {contender.name: contender for contender in found.contenders}


@pytest.fixture(scope="module")
def found() -> Comparison:
    agents = ["random", "greedy", "beam", "annealing"]
    return compare(layers(), hardware="b300", gpus=8, agents=agents, budget=12)


def test_nobody_is_better_than_the_search(found: Comparison) -> None:
    best = named(found)["optimize"].point
    assert best is not None and found.bound_s is not None
    assert [contender.name for contender in found.contenders][-1] == "optimize"
    for contender in found.contenders:
        assert contender.point is not None
        assert contender.point.sim.step_s >= best.sim.step_s >= found.bound_s
        gap = found.gap(contender.point)
        assert gap is not None and gap >= 0.0


def test_what_is_told_of_each(found: Comparison) -> None:
    for name, contender in named(found).items():
        assert contender.point is not None and contender.derivable is not None
        assert contender.derivable.verdict in (Verdict.YES, Verdict.NO)
        assert 1 <= contender.simulations <= (12 if name not in ("grid", "optimize") else 10**6)
        assert contender.seconds > 0.0
        if name != "grid":
            again = Session.replay(contender.journal, model=layers())
            assert again.simulate().step_s == contender.point.sim.step_s
    assert named(found)["optimize"].derivable.verdict is Verdict.YES  # type: ignore[union-attr]
    assert named(found)["grid"].derivable.verdict is Verdict.YES  # type: ignore[union-attr]


def test_the_search_s_certificate_is_taken_in_a_session(found: Comparison) -> None:
    point = named(found)["optimize"].point
    assert point is not None
    session = Session.replay(named(found)["optimize"].journal, model=layers())
    assert found.replayed == len(session.entries)
    assert session.simulate().step_s == point.sim.step_s
    whole = session.certificate()
    assert {key: value for key, value in point.certificate.items() if key != "evaluated"} == whole


def test_it_is_data(found: Comparison) -> None:
    told = found.to_json()
    assert told["schema"] == "rooflang.compared/1"
    assert told["stopped_by"] == "complete"
    assert {row["name"] for row in told["contenders"]} == set(named(found))
    assert all(row["point"]["gap"] >= 0.0 for row in told["contenders"])
    assert (told["inputs"]["budget"], told["inputs"]["seed"]) == (12, 0)


def journal(tmp_path: Path, body: str, *, batch: int = 64) -> Path:
    path = tmp_path / "other.journal"
    path.write_text(f"model mlp\nhardware b300\ngpus 8\nbatch {batch}\n\n{body}", encoding="utf-8")
    return path


def test_a_journal_of_others(tmp_path: Path) -> None:
    best, worse = "tensor_parallel axis=x\n", "dup_kernel down axis=x\n"
    path = journal(tmp_path, best + worse)
    found = compare(mlp(), hardware="b300", gpus=8, agents=[], journals=[path])
    other = named(found)[str(path)]
    by_hand = Session.start(mlp(), hardware="b300", gpus=8)
    by_hand.run(best)
    assert other.point is not None
    assert other.point.sim.step_s == by_hand.simulate().step_s  # the best on its way, not its end
    assert other.simulations == 3
    assert [contender.name for contender in found.contenders] == ["grid", str(path), "optimize"]


@pytest.mark.parametrize(
    ("body", "batch", "said"),
    [("", 32, "another batch"), ("split_kernel up dim=width\n", 64, "other.journal:6"), ("turn up\n", 64, "turn")],
)
def test_journals_that_cannot_be_compared(tmp_path: Path, body: str, batch: int, said: str) -> None:
    path = journal(tmp_path, body, batch=batch)
    with pytest.raises(Exception, match=said):
        compare(mlp(), hardware="b300", gpus=8, agents=[], journals=[path])
    with pytest.raises(ValueRangeError, match="cannot be read"):
        compare(mlp(), hardware="b300", gpus=8, agents=[], journals=[tmp_path / "none.journal"])


def test_unknown_agents_and_budgets_are_refused_before_any_work() -> None:
    with pytest.raises(UnknownNameError, match="gredy"):
        compare(mlp(), hardware="b300", gpus=8, agents=["gredy"])
    with pytest.raises(ValueRangeError, match="0 simulations"):
        compare(mlp(), hardware="b300", gpus=8, budget=0)
    with pytest.raises(ValueRangeError, match="no server"):
        compare(mlp(), hardware="b300", gpus=8, command="true")


def test_an_agent_of_one_s_own() -> None:
    pytest.importorskip("mcp")
    server = [sys.executable, "-m", "rooflang", "agent", "mcp", str(GRAPH), "--hardware", "b300", "--gpus", "8"]
    command = f"{sys.executable} {HERE / 'mcp_agent.py'}"
    found = compare(read(GRAPH), hardware="b300", gpus=8, agents=[], command=command, server=server)
    other = named(found)[command]
    assert other.point is not None and "ffn→8" in other.point.plan
    assert other.simulations == 2
    assert other.derivable is not None and other.derivable.verdict is Verdict.NO  # it merged nothing


def test_an_agent_that_simulated_nothing() -> None:
    pytest.importorskip("mcp")
    found = compare(mlp(), hardware="b300", gpus=8, agents=[], command="true", server=["false"])
    assert named(found)["true"].point is None
    assert "exit status 0" in named(found)["true"].note


def test_ctrl_c_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from rooflang.agent import compare as module

    def interrupted(name: str, desk: object, *, seed: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run", interrupted)
    found = module.compare(mlp(), hardware="b300", gpus=8, agents=["greedy", "beam"])
    assert found.stopped_by == "interrupted"
    assert [contender.name for contender in found.contenders] == ["grid", "greedy", "optimize"]


def test_ctrl_c_in_the_search_ends_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from rooflang.agent import compare as module
    from rooflang.search.outcome import outcome

    monkeypatch.setattr(module, "outcome", lambda *given: replace(outcome(*given), stopped_by="interrupted"))
    found = module.compare(mlp(), hardware="b300", gpus=8, agents=["greedy"])
    assert found.stopped_by == "interrupted"
    assert [contender.name for contender in found.contenders] == ["optimize"]
    assert found.contenders[0].point is not None
    assert found.bound_s is None  # not every number of stages was looked at


def test_a_time_limit_tells_what_there_is() -> None:
    progress = Progress(sink=lambda _: None).within(limit_s=1e-9)
    found = compare(mlp(), hardware="b300", gpus=8, agents=["greedy"], progress=progress)
    assert found.stopped_by == "time limit"
    assert all(contender.point is None and contender.note for contender in found.contenders)


@pytest.mark.slow
def test_v4_pro_at_decode() -> None:
    found = compare(
        "deepseek-v4-pro",
        hardware="b300",
        gpus=8,
        context=65536,
        batch=512,
        agents=["random", "greedy", "annealing"],
        budget=12,
    )
    best = named(found)["optimize"].point
    assert best is not None
    points = {each.name: each.point for each in found.contenders if each.point is not None}
    assert points.keys() >= {"grid", "greedy", "annealing", "optimize"}  # chance need not find what fits in 12 tries
    assert all(point.sim.step_s >= best.sim.step_s for point in points.values())
