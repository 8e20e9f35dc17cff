"""docs/soundness.md says what is so: its examples run, its commands exist, its numbers are not below the real ones."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflang.cli import program
from rooflang.ir import op
from rooflang.ir.reference import base
from rooflang.soundness.lemmas import LEMMAS
from rooflang.soundness.mutants import all_mutants

DOCS = Path(__file__).parents[2] / "docs" / "soundness.md"


@pytest.fixture
def unregistered() -> Iterator[None]:
    """Kinds that the examples register are forgotten afterwards."""
    kinds, references = dict(op.op_kinds()), dict(base.references())
    yield
    for table, known in ((op._KINDS, kinds), (base._REFERENCES, references)):
        for name in set(table) - set(known):
            del table[name]  # type: ignore[attr-defined]


def test_examples(unregistered: None) -> None:
    outcome = doctest.testfile(str(DOCS), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted > 20
    assert outcome.failed == 0


def test_commands_exist() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for line in re.findall(r"^rooflang (.*?)(?: +#.*)?$", text, re.MULTILINE):
        outcome = CliRunner().invoke(program, [line.split()[0], "--help"], prog_name="rooflang")
        assert outcome.exit_code == 0, line
        for flag in re.findall(r"--[a-z-]+", line):
            assert flag in outcome.output, line


def test_numbers_and_files() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert len(all_mutants()) > 150
    for lemma in LEMMAS:
        assert lemma.name in text
    root = DOCS.parents[1]
    for name in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (root / name).is_file()
    for name in re.findall(r"`(?:rooflang/)?soundness/([\w/]+(?:\.py)?)/?`", text):
        assert (root / "rooflang" / "soundness" / name).exists()
