"""Lemmas are proved, and what only looks like them is refuted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy

from rooflang.rules import rule_names
from rooflang.soundness import lemmas
from rooflang.soundness.lemmas import LEMMAS, Lemma

WRONG = [(lemma.name, name, refuted) for lemma in LEMMAS for name, refuted in lemma.wrong.items()]


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: lemma.name)
def test_proved(lemma: Lemma) -> None:
    assert lemma.proof()
    assert lemma.holds()


@pytest.mark.parametrize(("lemma", "name", "refuted"), WRONG, ids=[f"{a}: {b}" for a, b, _ in WRONG])
def test_refuted(lemma: str, name: str, refuted: Callable[[], bool]) -> None:
    assert refuted()


def test_each_lemma_has_a_look_alike_and_serves_some_rule() -> None:
    assert {"log-sum-exp", "top-k and argmax", "RMS", "affine scan", "ownership"} <= {lemma.name for lemma in LEMMAS}
    for lemma in LEMMAS:
        assert lemma.wrong
        assert set(lemma.rules) <= set(rule_names())


def test_a_failed_proof_or_an_unrefuted_look_alike_is_told() -> None:
    sound = Lemma(name="", says="", rules=(), proof=lambda: True, wrong={"": lambda: True})
    assert sound.holds()
    assert not Lemma(name="", says="", rules=(), proof=lambda: False).holds()
    assert not Lemma(name="", says="", rules=(), proof=lambda: True, wrong={"": lambda: False}).holds()


def test_signs_are_decided_by_coefficients() -> None:
    x, y = sympy.symbols("x y", nonnegative=True)
    assert lemmas._never_negative(x * y + 2)
    assert lemmas._never_negative(sympy.Integer(0))
    assert not lemmas._never_negative(x - y)
    assert not lemmas._never_negative(sympy.Integer(-1))


def test_the_merge_of_candidates_that_the_proof_is_about() -> None:
    """`_kept` is what keeping the first k of the first k does, for every rank that a candidate may have."""
    for k in range(1, 5):
        for a in range(6):
            for b in range(6):
                assert lemmas._kept(a, b, k, k) == (a + b < k)
