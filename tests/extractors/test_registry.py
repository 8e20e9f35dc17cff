"""Extractors by name."""

from __future__ import annotations

import pytest

from rooflang.errors import UnknownNameError
from rooflang.extractors import extractor, extractor_names, greedy, ilp


def test_extractors_are_found_by_name() -> None:
    assert extractor_names() == ("greedy", "ilp")
    assert (extractor("greedy"), extractor("ilp")) == (greedy.extract, ilp.extract)


def test_an_unknown_extractor_names_the_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean greedy"):
        extractor("gredy")
