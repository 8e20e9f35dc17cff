"""dup_kernel: an operator without side effects may run on every coordinate."""

from __future__ import annotations

from rooflang.ir import op_kind
from rooflang.rules import rule
from rooflang.rules.examples import decode_step, mlp
from rooflang.rules.record import Ok, Refusal

from .saturations import enodes_lost, saturated, snapshot, specs

RULE = rule("dup_kernel")


def test_only_pure_operators_are_taken() -> None:
    for op in (*mlp().ops, *decode_step().ops):
        verdict = RULE.check(op)
        assert isinstance(verdict, Ok if op_kind(op.kind).pure else Refusal)
    refused = RULE.check(decode_step().op_by_name["append"])
    assert isinstance(refused, Refusal)
    assert refused.code == "side-effect"


def test_the_engine_is_told_the_same() -> None:
    theory, egraph = snapshot(decode_step())
    pure = {theory.kernels[row.inputs[0]].name for row in egraph.rows["Pure"]}
    assert pure == {"save", "attend", "copy"}


def test_every_coordinate_may_run_a_pure_operator_whole() -> None:
    assert ((("R",), ("R",)), ("R",)) in specs(saturated(mlp()), "up")


def test_an_append_runs_whole_only_by_its_own_row() -> None:
    whole = [m for m in saturated(decode_step()).modes if m.op.name == "append" and m.out == ("R",)]
    assert [mode.choices[0] for mode in whole] == [mode.cut(0) for mode in whole]
    assert [step.primitive for mode in whole for step in mode.derivation] == ["split_kernel"]


def test_without_it_work_is_cut_or_owned() -> None:
    assert enodes_lost(mlp(), "dup_kernel")["Run2"] > 0
    block = saturated(mlp(), without="dup_kernel")
    assert block.modes
    assert all(mode.choices[0] != "R" for mode in block.modes)
