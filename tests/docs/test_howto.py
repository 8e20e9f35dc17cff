"""The how-tos run as they stand, and every link of README.md and docs/ leads somewhere."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooflang.ir import op
from rooflang.ir.reference import base
from tests.docs.pages import ROOT

HOWTO = sorted((ROOT / "docs" / "howto").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.M)


@pytest.fixture
def unregistered() -> Iterator[None]:
    """Kinds that the examples register are forgotten afterwards."""
    kinds, references = dict(op.op_kinds()), dict(base.references())
    yield
    for table, known in ((op._KINDS, kinds), (base._REFERENCES, references)):
        for name in set(table) - set(known):
            del table[name]  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", HOWTO, ids=lambda page: page.stem)
def test_examples_run(page: Path, unregistered: None) -> None:
    outcome = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0
    if page.stem in ("operator", "rule", "extractor"):
        assert outcome.attempted > 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for found in _LINK.finditer(text):
        target, _, anchor = found["target"].partition("#")
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name}: {found['target']}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {found['target']}"


def anchors(page: Path) -> set[str]:
    """Names of the headings of a page, as GitHub makes them."""
    headings = _HEADING.findall(_FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
