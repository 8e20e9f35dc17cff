"""The reference has every rule and every operator kind, and the packages that it is about are there."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from rooflang.ir import op_kinds
from rooflang.rules import rule_names
from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_registries(reference: ModuleType) -> None:
    rules = reference.rules_page()
    assert [line[3:] for line in rules.splitlines() if line.startswith("## ")] == list(rule_names())
    rows = [line for line in reference.operators_page().splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == sorted(op_kinds())
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)


def test_packages(reference: ModuleType) -> None:
    assert all(importlib.util.find_spec(name) for name in reference.PACKAGES)
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in reference.PACKAGES[:8])
