"""Collectives, rank by rank: what the definitions in terms of scatter, gather, broadcast and reduce say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflang.errors import PlacementError
from rooflang.ir.pieces import (
    Piece,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    join,
    merge,
    reduce,
    reduce_scatter,
    scatter,
)
from rooflang.ir.reference.base import Array, State

SEEDS = st.integers(0, 2**32 - 1)


def add(a: State, b: State) -> State:
    return (a[0] + b[0],)


def append(a: State, b: State) -> State:
    """Associative, not commutative: shows in which order ranks are combined."""
    return (np.char.add(a[0], b[0]),)


def piece(rng: np.random.Generator) -> Piece:
    shape = rng.integers(0, 7, 2)
    array = rng.integers(-9, 10, shape)
    return Piece(arrays=(array,), dims=(("a", "b"),), ids={"a": np.arange(shape[0]), "b": np.arange(shape[1])})


def parts(rng: np.random.Generator, size: int, count: int) -> list[Array]:
    """Indices dealt to ranks, any of which may get none."""
    owner = rng.integers(0, count, size)
    return [np.flatnonzero(owner == rank) for rank in range(count)]


def equal(a: Piece, b: Piece) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a.arrays, b.arrays)) and all(
        np.array_equal(ids, b.ids[label]) for label, ids in a.ids.items()
    )


def all_equal(found: list[Piece], wanted: list[Piece]) -> bool:
    return len(found) == len(wanted) and all(map(equal, found, wanted))


@given(seed=SEEDS, count=st.integers(1, 4))
def test_laws_of_table_2(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    x = piece(rng)
    dealt = {label: parts(rng, len(ids), count) for label, ids in x.ids.items()}
    shards = scatter(x, "a", dealt["a"])
    assert equal(gather(shards, "a"), x)
    assert all_equal(all_gather(shards, "a"), broadcast(gather(shards, "a"), count))
    assert all_equal(all_to_all(shards, "a", "b", dealt["b"]), scatter(gather(shards, "a"), "b", dealt["b"]))
    summands = [replace(x, arrays=(rng.integers(-9, 10, x.arrays[0].shape),)) for _ in range(count)]
    total = reduce(summands, add)
    assert all_equal(all_reduce(summands, add), broadcast(total, count))
    scattered = reduce_scatter(summands, add, "b", dealt["b"])
    assert all_equal(scattered, scatter(total, "b", dealt["b"]))
    assert all_equal(all_gather(scattered, "b"), all_reduce(summands, add))


@given(count=st.integers(1, 7))
def test_reductions_keep_the_order_of_ranks(count: int) -> None:
    letters = [Piece(arrays=(np.array([chr(97 + i)]),), dims=(("a",),), ids={"a": np.arange(1)}) for i in range(count)]
    word = "abcdefg"[:count]
    assert reduce(letters, append).arrays[0][0] == word
    assert all(p.arrays[0][0] == word for p in all_reduce(letters, append))
    (first, *_) = reduce_scatter(letters, append, "a", [np.arange(1)] * count)
    assert first.arrays[0][0] == word


def test_arrays_of_a_state_without_the_label_stay_whole() -> None:
    state = Piece(
        arrays=(np.ones(2), np.arange(6).reshape(2, 3)),
        dims=(("a",), ("a", "b")),
        ids={"a": np.arange(2), "b": np.arange(3)},
    )
    left, right = scatter(state, "b", [np.array([0, 2]), np.array([1])])
    assert left.arrays[0].shape == (2,)
    assert left.arrays[1].tolist() == [[0, 2], [3, 5]]
    assert equal(join([right, left], "b"), state)


def test_what_does_not_fit_is_refused() -> None:
    x = Piece(arrays=(np.arange(4),), dims=(("a",),), ids={"a": np.arange(4)})
    half, rest = scatter(x, "a", [np.arange(2), np.arange(2, 4)])
    with pytest.raises(PlacementError, match="hold the same indices of 'a'"):
        gather([half, half], "a")
    with pytest.raises(PlacementError, match="ranks hold different indices of 'a'"):
        merge(half, rest, add)
    with pytest.raises(PlacementError, match=r"a rank has \[0 1\] of 'a', not \[1 2\]"):
        half.take("a", np.array([1, 2]))
    with pytest.raises(PlacementError, match="cannot be cut along it"):
        x.take("b", np.arange(1))
    with pytest.raises(PlacementError, match="cannot be gathered along it"):
        gather([half, rest], "b")
