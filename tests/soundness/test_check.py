"""`check_rule`: rules and kinds of one's own, and what it refuses to try."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir import Graph, GraphBuilder, Op, Tensor, make_transfer, op_kind
from rooflang.ir.cut import OWNER, PARTIAL, REPLICATED, Cut, CutKind
from rooflang.rules import rule, rule_names
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.record import Ok, Refusal, Rule, Verdict
from rooflang.soundness.applied import sites
from rooflang.soundness.check import check_rule

NO = Refusal(code="no", reason="")


def mine(check: Any) -> Rule:
    """A rule of one's own."""
    return replace(rule("split_kernel"), name="mine", check=check)


def pair() -> Graph:
    """An activation, added to what it is of."""
    g = GraphBuilder("pair", batch=4, hidden=4)
    x = g.input("x", "batch hidden")
    a = g.op("a", "activation", [x], "batch hidden", function="relu")
    return g.build(g.op("y", "add", [a, x], "batch hidden"))


@pytest.mark.parametrize("name", rule_names())
def test_every_rule_by_its_name(name: str) -> None:
    found = check_rule(name, examples=15)
    assert found.sound
    assert str(found).startswith(f"{name} stood ")


def test_a_kind_by_its_name_by_its_record_and_in_a_graph() -> None:
    assert check_rule("rope", examples=20).sound
    assert check_rule(op_kind("matmul"), mlp(), examples=20).sound
    assert check_rule("matmul", mlp(), examples=20).sound
    assert check_rule("stateful_sample").examples == 0


def test_a_cut_that_is_not_sound() -> None:
    def check(op: Op, dim: str) -> Verdict:
        if op.kind != "rms_norm" or dim != "hidden":
            return NO
        return Ok(result=Cut(kind=CutKind.PAR, dim=dim, operands=(dim,), out=dim, loops=(dim,)))

    found = check_rule(mine(check), mlp())
    assert not found.sound
    assert "mine at norm, hidden" in str(found)
    assert "2 ranks" in str(found)


def test_a_choice_that_is_sound() -> None:
    assert check_rule(mine(lambda op: Ok(result=OWNER)), mlp(), at=[(op,) for op in mlp().ops], examples=40).sound
    whole = mine(lambda op: Ok(result=REPLICATED))
    assert check_rule(whole, mlp(), at=[(mlp().op_by_name["up"],)], examples=20).sound


def test_a_transfer_is_taken_at_its_word() -> None:
    def check(tensor: Tensor) -> Verdict:
        return Ok(result=make_transfer(tensor.name, (PARTIAL,), ("batch",))) if tensor.name == "up" else NO

    assert check_rule(mine(check), mlp(), examples=40).sound


def test_an_operator_that_makes_something_else() -> None:
    def check(outer: Op, inner: Op) -> Verdict:
        return Ok(result=replace(outer, operands=(inner.operands[0], outer.operands[1])))

    found = check_rule(mine(check), pair())
    assert not found.sound
    assert "y is" in str(found)
    assert "becomes" in str(found)


def test_a_graph_with_other_outputs() -> None:
    def drop(graph: Graph) -> Verdict:
        a, y = graph.ops
        return Ok(result=replace(graph, ops=(a, replace(y, operands=(y.operands[1], y.operands[1])))))

    def swap(graph: Graph) -> Verdict:
        a, y = graph.ops
        return Ok(result=replace(graph, ops=(a, replace(y, operands=y.operands[::-1]))))

    assert not check_rule(mine(drop), pair()).sound
    assert check_rule(mine(swap), pair(), examples=40).sound


def test_the_name_of_a_tensor_that_is_as_good() -> None:
    def check(op: Op) -> Verdict:
        return Ok(result=op.operands[0].name) if op.name == kept else NO

    kept = "copy"
    assert check_rule(mine(check), decode_step(), examples=20).sound
    kept = "attend"
    assert not check_rule(mine(check), decode_step(), examples=20).sound


def test_what_cannot_be_tried_is_said() -> None:
    with pytest.raises(UnknownNameError, match="did you mean"):
        check_rule("split_kernels")
    with pytest.raises(GraphError, match="needs an example"):
        check_rule(mine(lambda op: NO))
    with pytest.raises(GraphError, match="applies too rarely"):
        check_rule(mine(lambda op: NO), mlp(), at=[(mlp().ops[0],)], examples=2)
    with pytest.raises(GraphError, match="no operator of mlp"):
        check_rule(op_kind("rope"), mlp())

    def strange(op: Op, size: float) -> Verdict:
        return NO

    with pytest.raises(GraphError, match="'size'"):
        check_rule(mine(strange), mlp())

    def nothing(op: Op) -> Verdict:
        return Ok(result=3.5)

    found = check_rule(mine(nothing), mlp())
    assert not found.sound
    assert "says nothing that could be compared" in str(found)


def test_sites_are_found_by_the_types_of_parameters() -> None:
    def by_pair(outer: Op, inner: Op) -> Verdict:
        return NO

    def by_dim(op: Op, dim: str, *, more: int = 0) -> Verdict:
        return NO

    pairs = {(outer.name, inner.name) for outer, inner in sites(by_pair, mlp())}
    assert pairs == {("up", "norm"), ("down", "up"), ("y", "down")}
    dims = {dim for _, dim in sites(by_dim, mlp())}
    assert {"batch", "hidden", "ffn", "partial"} <= dims
    assert len(sites(by_dim, mlp())) == len(mlp().ops) * len(dims)
