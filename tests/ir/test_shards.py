"""`shard_sizes`: nothing is lost, shards are as even as they can be, alignment is kept."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import PlacementError
from rooflang.ir.shards import divides, shard_sizes

PARTS = st.lists(st.integers(1, 5), max_size=3)


@given(blocks=st.integers(0, 60), parts=PARTS, unit=st.integers(1, 4))
def test_sizes_add_up_and_keep_the_alignment(blocks: int, parts: list[int], unit: int) -> None:
    sizes = shard_sizes(blocks * unit, parts, multiple_of=unit)
    assert len(sizes) == math.prod(parts)
    assert sum(sizes) == blocks * unit
    assert all(size % unit == 0 for size in sizes)


@given(blocks=st.integers(0, 60), parts=PARTS, unit=st.integers(1, 4))
def test_the_largest_shard_is_as_small_as_it_can_be(blocks: int, parts: list[int], unit: int) -> None:
    sizes = shard_sizes(blocks * unit, parts, multiple_of=unit)
    assert max(sizes) == -(-blocks // math.prod(parts)) * unit
    assert list(sizes) == sorted(sizes, reverse=True)


@given(size=st.integers(0, 60), outer=st.integers(1, 5), inner=st.integers(1, 5))
def test_cuts_nest(size: int, outer: int, inner: int) -> None:
    """The inner axis cuts what the outer one left, wherever both divide."""
    sizes = shard_sizes(size, (outer, inner))
    if divides(size, (outer, inner)):
        (part,) = set(shard_sizes(size, (outer,)))
        assert sizes == shard_sizes(part, (inner,)) * outer


@given(size=st.integers(0, 60), parts=PARTS, unit=st.integers(1, 4))
def test_divides_says_that_all_are_equal(size: int, parts: list[int], unit: int) -> None:
    if divides(size, parts, multiple_of=unit):
        assert len(set(shard_sizes(size, parts, multiple_of=unit))) == 1
    elif size % unit == 0:
        assert len(set(shard_sizes(size, parts, multiple_of=unit))) > 1


def test_a_size_that_is_not_aligned_is_refused() -> None:
    with pytest.raises(PlacementError, match="multiples of 32") as caught:
        shard_sizes(100, (4,), multiple_of=32, where="ffn")
    assert caught.value.where == "ffn"
    assert caught.value.hint == "the next size that can is 128"
