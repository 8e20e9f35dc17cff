"""Option types: what they read, what they refuse, and that what they spell reads back."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.cli.types import Count, Counts, Known, Layers, OptionType, Seconds
from rooflang.errors import RooflangError, UnknownNameError

counts = st.integers(1, 2**40)


@given(counts)
def test_a_count_reads_back(value: int) -> None:
    assert Count().read(Count().spell(value), "--n") == value


@given(st.lists(counts, min_size=1, max_size=5).map(tuple))
def test_counts_read_back(values: tuple[int, ...]) -> None:
    assert Counts().read(Counts().spell(values), "--n") == values


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40).map(tuple))
def test_layers_read_back(values: tuple[int, ...]) -> None:
    assert Layers().read(Layers().spell(values), "--n") == values


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Count(), "64k", 65536),
        (Counts(), "1,2, 4k", (1, 2, 4096)),
        (Layers(), "3,4x14,2", (3, *[4] * 14, 2)),
        (Seconds(), "60", 60.0),
        (Seconds(), "500ms", 0.5),
        (Seconds(), "1.5", 1.5),
    ],
)
def test_reads(kind: OptionType, text: str, value: Any) -> None:
    assert kind.read(text, "--n") == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((Count(), text) for text in ("0", "-1", "1.5", "64kb", "", "2" * 21, "9" * 5000)),
        *((Counts(), text) for text in ("1,", ",", "1;2", "1,0")),
        *((Layers(), text) for text in ("3,,4", "3,x", "4x", "-1", "9" * 5000, "1x99999")),
        *((Seconds(), text) for text in ("0", "-5", "soon", "nan", "inf", "1 h", "")),
    ],
)
def test_refuses_with_the_name_of_the_option(kind: OptionType, text: str) -> None:
    with pytest.raises(RooflangError) as caught:
        kind.read(text, "--n")
    assert caught.value.where == "--n"
    assert caught.value.expected


def test_names_in_any_case_and_paths() -> None:
    kind = Known("fruit", lambda: ("Apple", "pear"), suffix=".toml")
    assert kind.read("APPLE", "--f") == "Apple"
    assert kind.read("banana.toml", "--f") == "banana.toml"
    with pytest.raises(UnknownNameError, match="unknown fruit 'aple'") as caught:
        kind.read("aple", "--f")
    assert caught.value.hint.startswith("did you mean Apple")


def test_an_argument_is_named_as_the_help_text_names_it() -> None:
    argument = click.Argument(["fruit"], type=Known("fruit", lambda: ("pear",)))
    with pytest.raises(UnknownNameError) as caught:
        argument.type.convert("plum", argument, None)
    assert caught.value.where == "FRUIT"
