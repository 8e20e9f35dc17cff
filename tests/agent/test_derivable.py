"""Is a plan in the e-graphs: yes, no, or nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rooflang.agent import Session
from rooflang.agent.derivable import Verdict, derivable
from rooflang.eqsat import Limits
from rooflang.ir.graph import Graph
from rooflang.search.api import optimize, prepare

from .graphs import decode, layers, mlp

CASES = Path(__file__).parents[2] / "docs" / "cases"


def start(graph: Graph, *lines: str) -> Session:
    session = Session.start(graph, hardware="b300", gpus=8)
    session.run("\n".join(lines))
    return session


def asked(session: Session, **given: Limits) -> tuple[Verdict, str]:
    found = derivable(session.plan, session.placed.blocks, **given)
    assert found.to_json() == {"verdict": found.verdict.value, "reason": found.reason}
    return found.verdict, found.reason


@pytest.mark.parametrize("graph", [mlp, layers, decode])
def test_what_the_search_found_is_there(graph: Callable[[], Graph]) -> None:
    built = graph()
    point = optimize(built, hardware="b300", gpus=8, objective="throughput").frontier[0]
    session = start(built)
    session.follow(point.certificate)
    assert asked(session) == (Verdict.YES, "")
    assert asked(start(built)) == (Verdict.YES, "")


def test_halves_that_were_not_merged_are_not_there() -> None:
    lines = ["split_kernel layers.1.up dim=ffn"]
    verdict, reason = asked(start(layers(), *lines))
    assert verdict is Verdict.NO
    assert "layers.1" in reason and "gather of layers.1.up, ffn → O" in reason
    assert asked(start(layers(), *lines, "merge_all")) == (Verdict.YES, "")


def test_without_the_end_of_a_saturation_nobody_knows() -> None:
    session = start(layers(), "tensor_parallel axis=x")
    assert asked(session) == (Verdict.YES, "")
    verdict, reason = asked(session, limits=Limits(nodes=1))
    assert verdict is Verdict.LIMIT
    assert "node limit" in reason


def test_one_layer_laid_otherwise_is_no_plan_for_each_kind() -> None:
    session = start(layers(), "tensor_parallel axis=x", "split_kernel layers.1.up dim=batch only=this", "merge_all")
    verdict, reason = asked(session)
    assert verdict is Verdict.NO
    assert "layers.1" in reason and "one plan for each kind" in reason


def test_kinds_set_apart_and_laid_alike_again_are_one() -> None:
    lines = ["split_kernel layers.1.up dim=ffn only=this", "tensor_parallel axis=x"]
    session = start(layers(), *lines)
    assert len(session.placed.blocks.kinds) > len(start(layers()).placed.blocks.kinds)
    assert asked(session) == (Verdict.YES, "")


def test_order_and_ranges_are_no_terms() -> None:
    for line, said in [
        ("set_compute up stream=1", "streams"),
        ("add_control_edge up after=down", "control edges"),
        ("split_kernel down dim=ffn parts=4096x8", "taken apart"),
    ]:
        verdict, reason = asked(start(mlp(), line))
        assert verdict is Verdict.NO and said in reason


def test_leaves_rest_where_e_graphs_know() -> None:
    session = start(mlp(), "tensor_parallel axis=x", "set_memory w1 memory=dram")
    assert asked(session) == (Verdict.YES, "")


def test_the_grid_is_there() -> None:
    ready = prepare(layers(), hardware="b300", gpus=8, dp=8)
    assert derivable(ready.plan, ready.problem.blocks).verdict is Verdict.YES


@pytest.mark.slow
@pytest.mark.parametrize("case", ["decode-64k", "prefill-8k", "prefill-1m"])
def test_the_agent_s_plans_of_the_paper_are_there(case: str) -> None:
    session = Session.replay((CASES / f"{case}.journal").read_text(encoding="utf-8"))
    assert asked(session) == (Verdict.YES, "")
