"""The names of the package: there, the right ones, and loaded only when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rooflang


@pytest.mark.parametrize("name", rooflang.__all__)
def test_every_name_is_there_and_listed(name: str) -> None:
    assert getattr(rooflang, name) is not None
    assert name in dir(rooflang)


def test_names_are_what_they_say() -> None:
    from rooflang.ir.graph import GraphBuilder
    from rooflang.search.api import optimize, simulate

    assert (rooflang.optimize, rooflang.simulate, rooflang.GraphBuilder) == (optimize, simulate, GraphBuilder)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rooflang' has no attribute 'optimise'"):
        _ = rooflang.optimise  # type: ignore[attr-defined]


def test_importing_the_package_loads_none_of_its_parts() -> None:
    script = "import sys, rooflang; print(*[n for n in sys.modules if n.startswith('rooflang.')])"
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert outcome.stdout == "\n"
