"""Every record is whole: it has its name, its examples do what they say, its text can be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rooflang.rules
from rooflang.errors import UnknownNameError
from rooflang.rules import rule, rule_names
from rooflang.rules.record import Ok, Refusal
from rooflang.rules.theory import Shape

FOLDER = Path(rooflang.rules.__file__).parent
SHAPE = Shape(axes=2, arities=(1, 2, 3), fusions=(((-1, 1), (0,)),))


@pytest.mark.parametrize("name", rule_names())
def test_the_file_the_record_and_the_test_have_one_name(name: str) -> None:
    assert rule(name).name == name
    assert (FOLDER / f"{name}.py").is_file()
    assert (Path(__file__).parent / f"test_{name}.py").is_file()


@pytest.mark.parametrize("name", rule_names())
def test_one_example_fires_and_one_is_refused(name: str) -> None:
    assert isinstance(rule(name).fires(), Ok)
    refusal = rule(name).refused()
    assert isinstance(refusal, Refusal)
    assert refusal.code
    assert refusal.reason


@pytest.mark.parametrize("name", rule_names())
def test_the_description_says_it_all(name: str) -> None:
    record, text = rule(name), rule(name).describe()
    refusal = record.refused()
    assert isinstance(refusal, Refusal)
    for part in (name, record.before, record.after, record.why, refusal.reason, record.evidence, *record.preconditions):
        assert part in text
    assert (f":ruleset {name})" in text) == (record.egglog is not None)


def test_order_and_place_change_no_term() -> None:
    without = {name for name in rule_names() if rule(name).egglog is None}
    assert without == {"set_compute", "set_memory", "add_control_edge", "remove_control_edge"}


@pytest.mark.parametrize("name", rule_names())
def test_each_rule_has_a_ruleset_of_its_own(name: str) -> None:
    egglog = rule(name).egglog
    if egglog is not None:
        text = egglog.rules(SHAPE)
        assert text
        assert all(each.endswith(f":ruleset {name})") for each in text)


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean split_kernel"):
        rule("split_kernels")


def test_names_are_had_without_the_records() -> None:
    code = (
        "import sys, rooflang.rules as r; r.rule_names();"
        "print([name for name in sys.modules if 'rules.' in name or 'egglog' in name])"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"
