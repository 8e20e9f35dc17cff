"""Rows and steps of the fast encoding follow from the literal primitives; broken ones do not."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from rooflang.ir.cut import CutKind
from rooflang.rules.laws import ALL_GATHER, ALL_TO_ALL, LAWS
from rooflang.soundness.algebra import derived, laws, operator, schema, split
from rooflang.soundness.cases import case_names, example, the_op
from rooflang.soundness.derive import Algebra, declared, underived
from rooflang.soundness.mutants.splits import _ROWS as BROKEN
from rooflang.soundness.steps import step_goals, underived_steps

from ..rules.saturations import moe, saturated

#: Rows that cut two labels at once or replicas of a memory: what a kind says about itself beyond its labels.
DECLARED = {
    ("attention_dense", "window"),
    ("attention_chosen", "ctx"),
    ("grouped_causal", "kv"),
    ("grouped_window", "kv"),
    ("grouped_decode", "kv"),
    ("grouped_sinks", "kv"),
    ("grouped_capped", "kv"),
    ("grouped_chunks", "kv"),
    ("pool", "seq"),
    ("view", "outer"),
    ("repeat", "kv"),
    ("flatten", "outer"),
    ("rename", "new"),
    ("kv_append", "replica"),
    ("kv_append_several", "replica"),
    ("append_by_head", "replica"),
    ("conv_push", "replica"),
    ("delta_update", "replica"),
    ("delta_update_by_head", "replica"),
    ("linear_update", "replica"),
}


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("name", case_names())
def test_every_row_and_every_pair_of_rows_follows(name: str, axes: int) -> None:
    left = underived(the_op(example(name)), axes)
    assert not left, ", ".join(map(str, left))


def test_what_is_declared_is_known() -> None:
    assert {(name, cut.dim) for name in case_names() for cut in declared(the_op(example(name)))} == DECLARED


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_row_does_not_follow(name: str) -> None:
    case, rows = BROKEN[name]
    op = the_op(example(case))
    assert [goal for goal in underived(op, 1, rows(op)) if not isinstance(goal.choices[0], str)]


def test_the_modes_that_the_engine_derives_are_those_that_are_shown() -> None:
    for axes in (1, 2):
        block = saturated(moe(), axes)
        for mode in block.modes:
            assert all(choice in Algebra.of(mode.op, axes).ways() for choice in mode.choices)


def test_every_step_along_one_axis_follows() -> None:
    goals = step_goals(1)
    assert {goal.law for goal in goals} == set(LAWS)
    assert not underived_steps(1)


@pytest.mark.slow
def test_every_step_along_two_axes_follows() -> None:
    left = underived_steps(2)
    assert not left, ", ".join(map(str, left))


def test_steps_beside_another_axis_and_joint_ones_follow() -> None:
    goals = step_goals(2)
    assert any(len({*goal.before}) == 1 for goal in goals)  # two axes that change alike
    assert not underived_steps(2, list(islice(goals, 0, None, 12)))


def test_steps_that_lead_elsewhere_do_not_follow() -> None:
    """Every constructor in the place of every other one with as many arguments."""
    gathers = [goal for goal in step_goals(1) if goal.law is ALL_GATHER]
    exchanges = [goal for goal in step_goals(1) if goal.law is ALL_TO_ALL]
    wrong = [replace(goal, right=("AllGather", (goal.right[1] + 1) % 3, *goal.right[2:])) for goal in gathers]
    wrong += [replace(goal, right=("AllReduce", 0, 0, goal.right[3])) for goal in gathers]
    wrong += [
        replace(goal, right=(*goal.right[:1], goal.right[2], goal.right[1], *goal.right[3:])) for goal in exchanges
    ]
    wrong += [replace(goal, left=("Scatter", goal.right[1], 0, ("Leaf", 0))) for goal in exchanges]
    assert underived_steps(1, wrong) == wrong


def test_states_that_are_no_shards_of_a_label_are_not_scattered_along_it() -> None:
    """A list of candidates: a reduce-scatter along its own dim does not follow, along another one it does."""
    goals = [g for g in step_goals(2) if g.state and g.law.collective == "reduce_scatter" and g.after[1] == "P"]
    by_label = {label: [g for g in goals if g.after[0] == label] for label in "de"}
    assert by_label["d"]
    assert not underived_steps(2, by_label["d"], along=["d"])
    assert underived_steps(2, by_label["e"], along=["d"]) == by_label["e"]


def matmul(*, commute: bool = True) -> list[str]:
    """Laws and splits of a product over two axes; m, n, k are the labels 1, 2, 3."""
    commands = [*schema([2]), *laws(), *operator(0, 2, 2, pure=True), "(Along 0 1)", "(Along 0 2)"]
    if not commute:
        commands = [c for c in commands if "(!= a b)" not in c]
    for axis in (0, 1):
        commands += split(0, axis, 2, [("Scatter", 1, axis), ("Broadcast", axis)], ("Gather", 1, axis))
        commands += split(0, axis, 2, [("Broadcast", axis), ("Scatter", 2, axis)], ("Gather", 2, axis))
        commands += split(0, axis, 2, [("Scatter", 3, axis), ("Scatter", 3, axis)], ("Reduce", 0, axis))
    return commands


def test_two_axes_need_the_laws_of_commutation() -> None:
    x, w = ("Leaf", 0), ("Leaf", 1)
    product = ("Op2", 0, 0, x, w)
    rows = ("Scatter", 2, 1, product)
    ranks = ("Op2", 0, 3, ("Broadcast", 1, ("Scatter", 3, 0, x)), ("Scatter", 2, 1, ("Scatter", 3, 0, w)))
    summed = ("Reduce", 0, 0, ranks)
    wrong = (
        "Reduce",
        0,
        0,
        ("Op2", 0, 3, ("Broadcast", 1, ("Scatter", 3, 0, x)), ("Scatter", 3, 1, ("Scatter", 3, 0, w))),
    )
    assert derived(matmul(), [(rows, summed), (rows, wrong)]) == [True, False]
    assert derived(matmul(commute=False), [(rows, summed)]) == [False]


def test_a_fused_kernel_follows_from_its_two_operators() -> None:
    for name in ("norm_matmul", "matmul_add", "combine_add", "norm_gated"):
        algebra = Algebra.of(the_op(example(name)), 1)
        assert algebra.fused is not None
        text = "\n".join(algebra.commands())
        assert "Op2 5 0" in text or "Op1 5 0" in text or "Op3 5 0" in text  # the inner one is a kernel of its own


def test_summaries_and_states_are_what_operators_are_made_of() -> None:
    made_of = {name: Algebra.of(the_op(example(name)), 1) for name in case_names()}
    assert {n for n, a in made_of.items() if a.summarised} == {
        "delta_final",
        "delta_final_by_head",
        "linear_final",
    }
    assert "attention_indexed" in {n for n, a in made_of.items() if a.folds and a.exchanges}
    kinds = {n for n, a in made_of.items() for cut in a.rows if cut.kind in (CutKind.STAT, CutKind.SCAN)}
    assert kinds <= {n for n, a in made_of.items() if a.exchanges}
