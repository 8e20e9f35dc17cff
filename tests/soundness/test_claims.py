"""Every rule, and every cut of every operator kind, on examples that Hypothesis draws."""

from __future__ import annotations

import pytest

from rooflang.errors import UnknownNameError
from rooflang.ir.op import op_kinds
from rooflang.rules import rule_names
from rooflang.soundness.cases import uncovered
from rooflang.soundness.claims import claims, claims_of_kind

from .drawn import hold

#: How many examples of each claim the fast tests draw, and the slow ones.
FEW, MANY = 25, 300

#: Kinds whose examples take tens of milliseconds.
_LONG = {"delta_scan", "delta_final"}


@pytest.mark.parametrize("rule", rule_names())
def test_a_few_examples_of_every_rule(rule: str) -> None:
    for claim in claims(rule):
        hold(claim, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("rule", rule_names())
def test_many_examples_of_every_rule(rule: str) -> None:
    for claim in claims(rule):
        hold(claim, MANY)


@pytest.mark.parametrize("kind", sorted(set(op_kinds()) - _LONG))
def test_a_few_examples_of_every_kind(kind: str) -> None:
    for claim in claims_of_kind(kind):
        hold(claim, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(op_kinds()))
def test_many_examples_of_every_kind(kind: str) -> None:
    for claim in claims_of_kind(kind):
        hold(claim, MANY)


def test_every_kind_has_cases_and_all_but_two_may_be_cut() -> None:
    assert uncovered() == frozenset()
    assert {kind for kind in op_kinds() if not claims_of_kind(kind)} == {"stateful_sample", "opaque"}


def test_an_unknown_rule_has_no_claims() -> None:
    with pytest.raises(UnknownNameError, match="split_kernel"):
        claims("split")
