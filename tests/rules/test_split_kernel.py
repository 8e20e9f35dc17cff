"""split_kernel: what it refuses, and that the engine derives exactly the modes that signatures allow."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from rooflang.ir import Graph, GraphBuilder, signature
from rooflang.ir.cut import CutKind
from rooflang.rules import rule
from rooflang.rules.examples import attention_then_add, decode_step, mlp
from rooflang.rules.record import Ok, Refusal
from rooflang.rules.theory import partial_combines

from .saturations import enodes_lost, moe, saturated, snapshot, specs

RULE = rule("split_kernel")


def test_the_verdict_carries_the_row_of_the_signature() -> None:
    up = mlp().op_by_name["up"]
    verdict = RULE.check(up, "ffn")
    assert isinstance(verdict, Ok)
    assert verdict.result in signature(up)
    assert verdict.result.operands == ("R", "ffn")


@pytest.mark.parametrize(
    ("graph", "op", "dim", "code"),
    [
        (mlp(), "up", "vocab", "no-such-cut"),
        (mlp(), "y", "partial", "other-combine"),  # its operands' partial values are not given
        (decode_step(), "append", "width", "no-such-cut"),
    ],
)
def test_refusals(graph: Graph, op: str, dim: str, code: str) -> None:
    verdict = RULE.check(graph.op_by_name[op], dim)
    assert isinstance(verdict, Refusal)
    assert verdict.code == code


def test_summands_pass_through_an_add_and_log_sum_exp_states_do_not() -> None:
    combine, add = moe().op_by_name["combine"], attention_then_add().op_by_name["y"]
    assert isinstance(RULE.check(combine, "partial", partials=partial_combines(moe().ops)), Ok)
    refused = RULE.check(add, "partial", partials=partial_combines(attention_then_add().ops))
    assert isinstance(refused, Refusal)
    assert refused.code == "other-combine"
    assert ((("P",), ("R",)), ("P",)) in specs(saturated(moe()), "combine")
    block = saturated(attention_then_add())
    assert all("P" not in mode.operands[0] for mode in block.modes if mode.op.name == "y")
    assert any(mode.out == ("P",) for mode in block.modes if mode.op.name == "attend")


def test_shards_keep_the_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks_of_8 = [replace(cut, multiple_of=8) for cut in signature(mlp().op_by_name["up"])]
    monkeypatch.setattr("rooflang.rules.split_kernel.signature", lambda op: blocks_of_8)
    up = mlp().op_by_name["up"]
    assert isinstance(RULE.check(up, "ffn", sizes={"ffn": 16}, parts=2), Ok)
    refused = RULE.check(up, "ffn", sizes={"ffn": 12}, parts=2)
    assert isinstance(refused, Refusal)
    assert refused.code == "unaligned"


def test_shards_are_whole_groups() -> None:
    g = GraphBuilder("pool", batch=2, seq=10, ctx=4, width=8)
    pool = g.build(g.op("y", "pool", [g.input("x", "batch seq width")], "batch ctx width")).op_by_name["y"]
    refused = RULE.check(pool, "seq", sizes={"seq": 10, "ctx": 4}, parts=2)
    assert isinstance(refused, Refusal)
    assert refused.code == "unaligned"
    assert "seq has 10 entries, which are not 4 groups (ctx) of one size" in refused.reason
    assert isinstance(RULE.check(pool, "seq", sizes={"seq": 10, "ctx": 4}), Ok)  # not cut
    assert isinstance(RULE.check(pool, "seq", sizes={"seq": 12, "ctx": 4}, parts=2), Ok)


@pytest.mark.parametrize("axes", [0, 1, 2, 3])
def test_derived_modes_are_the_product_of_the_rows(axes: int) -> None:
    """One choice an axis, each axis by itself: whole, owned, or a row. The engine knows no others, and all of these."""
    theory, egraph = snapshot(moe(), axes)
    for kernel, op in enumerate(moe().ops):
        count = len(op.operands)
        choices = {("R",) * (count + 1), ("O",) * (count + 1)}
        choices |= {(*cut.operands, cut.out) for cut in signature(op)}
        if op.name == "y":  # x comes from a nonlinearity: it is never partial, so that no sum passes through
            choices -= {("P", "P", "P")}
        expected = {tuple(zip(*chosen)) if chosen else ((),) * (count + 1) for chosen in product(choices, repeat=axes)}
        rows = [row.inputs for row in egraph.rows[f"Mode{count}"] if row.inputs[:2] == (kernel, axes)]
        found = [tuple(theory.decode(code) for code in row[2:]) for row in rows]
        assert len(found) == len(set(found))
        assert set(found) == expected, op.name


def test_frozen_modes_name_their_cuts() -> None:
    for mode in saturated(moe(), 2).modes:
        for axis in range(2):
            cut = mode.cut(axis)
            if cut is None:
                assert {spec[axis] for spec in (*mode.operands, mode.out)} in ({"R"}, {"O"})
            else:
                assert cut in signature(mode.op)
                assert (*cut.operands, cut.out) == tuple(spec[axis] for spec in (*mode.operands, mode.out))


def test_without_it_nothing_is_cut() -> None:
    lost = enodes_lost(moe(), "split_kernel")
    assert lost["Run2"] > 0
    block = saturated(moe(), without="split_kernel")
    cuts = [mode.cut(0) for mode in block.modes]
    assert {cut.kind for cut in cuts if cut is not None} == {CutKind.ROUTE}
