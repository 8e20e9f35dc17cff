"""`verify_rules` says what stood its trial, and names what did not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rooflang.errors import UnknownNameError
from rooflang.rules.record import Ok
from rooflang.soundness import report
from rooflang.soundness.mutants import Mutant
from rooflang.soundness.orders import AddedEdges
from rooflang.soundness.report import MutantReport, Report, show, verify_rules


def few(name: str) -> Report:
    return verify_rules(examples=20, seeds=2, names=[name])


def test_a_sound_rule_has_one_line() -> None:
    found = few("add_control_edge")
    assert found.sound
    (line,) = [text for text in show(found).splitlines() if text.startswith("add_control_edge")]
    assert "5 of 5" in line
    assert show(found).splitlines()[-1].startswith("sound: 1 rules, 20 examples, 5 of 5 mutants killed on each of 2")


def test_json_has_everything() -> None:
    data = json.loads(json.dumps(few("merge_gather_scatter").to_json()))
    assert data["schema"] == "rooflang.soundness/1"
    assert data["sound"] is True
    (rule,) = data["rules"]
    assert rule["rule"] == "merge_gather_scatter"
    assert rule["label"] == "exact"
    assert rule["lemmas_proved"] is True
    assert all(len(mutant["examples_to_kill"]) == 2 for mutant in rule["mutants"])


def test_a_broken_rule_is_shown_with_its_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = AddedEdges(check=lambda graph, *edge, control: Ok(result=edge))
    monkeypatch.setattr(report, "claims", lambda name: (broken,))
    found = few("add_control_edge")
    assert not found.sound
    text = show(found)
    assert "add_control_edge is refuted" in text
    assert "would wait for" in text
    assert "NOT SOUND" in text.splitlines()[-1]


def test_a_mutant_that_lives_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = Mutant(name="nothing broken", rule="add_control_edge", claim=AddedEdges())
    monkeypatch.setattr(report, "all_mutants", lambda: (harmless,))
    monkeypatch.setattr(report, "MUTANT_EXAMPLES", 20)
    found = few("add_control_edge")
    assert not found.sound
    assert "alive: nothing broken" in show(found)
    assert found.rules[0].mutants[0].worst == 20


def test_without_sympy_lemmas_are_untried_and_a_failed_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_proved", lambda say: None)
    untried = few("merge_gather_scatter")
    assert untried.sound
    assert "sympy is not installed" in show(untried)
    wrong = replace(untried.rules[0], lemmas_proved=False)
    assert not wrong.sound
    assert "REFUTED" in show(replace(untried, rules=(wrong,)))


def test_worst_of_the_seeds() -> None:
    assert MutantReport(name="", examples_to_kill=(3, 7, 1)).worst == 7
    assert not MutantReport(name="", examples_to_kill=(3, None)).killed


def test_an_unknown_rule() -> None:
    with pytest.raises(UnknownNameError, match="did you mean"):
        verify_rules(names=["split"])


@pytest.mark.slow
def test_all_rules_are_sound() -> None:
    found = verify_rules(examples=100, seeds=3)
    assert found.sound, show(found)
    assert sum(len(each.mutants) for each in found.rules) >= 150
