"""Values over one mesh axis as lists, one array per coordinate, and what the equations of the rules are made of.

The collectives are written by what each coordinate receives from the others, apart from scatter, gather and reduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Array = npt.NDArray[np.int64]
Lifted = list[Array]


def scatter(x: Array, dim: int, sizes: Sequence[int]) -> Lifted:
    """Shards of these sizes along a dim, in the order of the coordinates."""
    ends = list(accumulate(sizes))
    return [x.take(range(end - size, end), axis=dim) for end, size in zip(ends, sizes, strict=True)]


def gather(shards: Lifted, dim: int) -> Array:
    return np.concatenate(shards, axis=dim)


def broadcast(x: Array, coordinates: int) -> Lifted:
    return [x] * coordinates


def reduce(parts: Lifted) -> Array:
    return np.sum(parts, axis=0)


def all_gather(shards: Lifted, dim: int) -> Lifted:
    """Coordinate i receives every shard."""
    return [np.concatenate([shards[j] for j in range(len(shards))], axis=dim) for _ in shards]


def all_reduce(parts: Lifted) -> Lifted:
    """Coordinate i receives and adds every part."""
    received = []
    for _ in parts:
        total = parts[0].copy()
        for part in parts[1:]:
            total = total + part
        received.append(total)
    return received


def reduce_scatter(parts: Lifted, dim: int, sizes: Sequence[int]) -> Lifted:
    """Coordinate i receives and adds its own piece of every part."""
    starts = [0, *accumulate(sizes)]
    pieces = [[part.take(range(starts[i], starts[i + 1]), axis=dim) for part in parts] for i in range(len(parts))]
    return [sum(piece[1:], start=piece[0]) for piece in pieces]


def all_to_all(shards: Lifted, concatenate: int, split: int, sizes: Sequence[int]) -> Lifted:
    """Coordinate i receives the i-th piece, along `split`, of every shard."""
    starts = [0, *accumulate(sizes)]
    return [
        np.concatenate([s.take(range(starts[i], starts[i + 1]), axis=split) for s in shards], axis=concatenate)
        for i in range(len(shards))
    ]


def equal(one: Lifted, other: Lifted) -> bool:
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def whole(shape: Sequence[int]) -> Array:
    """An array whose entries all differ, so that any misplaced one shows."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.int64).reshape(shape)


@st.composite
def cuts(draw: st.DrawFn, dims: int = 2) -> tuple[int, list[list[int]]]:
    """Coordinates and, for each dim, the sizes of their shards: uneven, empty ones among them."""
    coordinates = draw(st.integers(1, 4))
    size = st.lists(st.integers(0, 3), min_size=coordinates, max_size=coordinates)
    return coordinates, [draw(size) for _ in range(dims)]
