"""Digits: every index has one owner per axis, nested cuts commute, pooled dims agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import PlacementError
from rooflang.ir.digits import Digits

AXES = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(axes=AXES, size=st.integers(0, 40))
def test_shards_cover_a_dim_once(axes: tuple[int, int], size: int) -> None:
    digits = Digits.nested(axes, {"d": size}, {"d": (0, 1)})
    for cut in [(), (0,), (1,), (0, 1)]:
        held = {digits.ids("d", rank, cut).tobytes(): digits.ids("d", rank, cut) for rank in digits.ranks}
        found = np.concatenate(list(held.values()))
        assert sorted(found) == list(range(size))


@given(axes=AXES, size=st.integers(0, 40))
def test_gathering_the_outer_axis_first_or_last_is_the_same(axes: tuple[int, int], size: int) -> None:
    digits = Digits.nested(axes, {"d": size}, {"d": (0, 1)})
    for rank in digits.ranks:
        both = set(digits.ids("d", rank, (0, 1)))
        assert both == set(digits.ids("d", rank, (0,))) & set(digits.ids("d", rank, (1,)))


def test_the_inner_axis_alone_lies_in_strides() -> None:
    digits = Digits.nested((2, 2), {"d": 8}, {"d": (0, 1)})
    assert digits.ids("d", (0, 0), (1,)).tolist() == [0, 1, 4, 5]
    assert digits.ids("d", (1, 0), (0,)).tolist() == [4, 5, 6, 7]
    assert digits.ids("d", (1, 1), (0, 1)).tolist() == [6, 7]


def test_an_axis_that_never_cuts_a_dim_has_no_digit_of_it() -> None:
    digits = Digits.nested((2, 2), {"d": 8}, {"d": (1,)})
    assert digits.ids("d", (0, 0), (1,)).tolist() == [0, 1, 2, 3]
    with pytest.raises(PlacementError, match="axis 0 does not cut 'd'"):
        digits.ids("d", (0, 0), (0,))


def test_lines_are_the_groups_of_a_collective() -> None:
    digits = Digits(axis_sizes=(2, 3), sizes={}, owner={})
    assert list(digits.lines(1)) == [[(0, 0), (0, 1), (0, 2)], [(1, 0), (1, 1), (1, 2)]]
    assert list(digits.lines(0)) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(0, 2), (1, 2)]]


@given(axes=AXES, entries=st.integers(1, 12), ratio=st.integers(1, 5), short=st.integers(0, 4))
def test_a_pooled_dim_is_cut_where_its_entries_are(axes: tuple[int, int], entries: int, ratio: int, short: int) -> None:
    sizes = {"ctx": entries, "seq": entries * ratio - min(short, ratio - 1)}
    digits = Digits.nested(axes, sizes, {"seq": (0,), "ctx": (1,)}, [("seq", "ctx")])
    real = -(-sizes["seq"] // entries)
    for rank in digits.ranks:
        held = set(digits.ids("ctx", rank, (0, 1)))
        assert {position // real for position in digits.ids("seq", rank, (0, 1))} <= held


def test_two_compressions_of_one_prompt_agree_through_it() -> None:
    sizes = {"seq": 32, "ctx4": 8, "ctx16": 2}
    digits = Digits.nested((2,), sizes, {"ctx4": (0,)}, [("seq", "ctx4"), ("seq", "ctx16")])
    assert digits.ids("seq", (1,), (0,)).tolist() == list(range(16, 32))
    assert digits.ids("ctx4", (1,), (0,)).tolist() == [4, 5, 6, 7]
    assert digits.ids("ctx16", (1,), (0,)).tolist() == [1]


def test_compressions_that_cannot_agree_are_refused() -> None:
    with pytest.raises(PlacementError, match="are not whole entries"):
        Digits.nested(
            (3,), {"seq": 12, "a": 3, "b": 6, "c": 4}, {"a": (0,)}, [("seq", "a"), ("seq", "b"), ("seq", "c")]
        )
