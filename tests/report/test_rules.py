"""Rules as text: nothing is lost by wrapping, and egglog stays egglog."""

from __future__ import annotations

import re

import pytest

from rooflang.report.layout import WIDTH
from rooflang.report.rules import show_rule
from rooflang.rules import rule, rule_names


@pytest.mark.parametrize("name", rule_names())
def test_it_fits_a_page_and_says_every_word(name: str) -> None:
    shown, whole = show_rule(rule(name)), rule(name).describe()
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert shown.split() == whole.split()


@pytest.mark.parametrize("name", rule_names())
def test_no_term_of_a_premise_is_broken(name: str) -> None:
    for line in show_rule(rule(name)).splitlines():
        for term in re.findall(r"\((?:Axis|Mode\d|Cut\d|Has|View)\b[^()]*$", line):
            raise AssertionError(f"{term!r} goes on in the next line")


def test_words_go_on_below_themselves() -> None:
    lines = show_rule(rule("split_kernel")).splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith("  sound    ")]
    assert lines[first + 1].startswith(" " * 11)
    assert lines[first + 1][11] != " "
