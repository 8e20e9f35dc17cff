"""`shard_sizes`: the one function that says how a dim is cut over axes. Cost, evaluation and placement all ask it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rooflang.errors import PlacementError


def shard_sizes(size: int, parts: Sequence[int], *, multiple_of: int = 1, where: str = "") -> tuple[int, ...]:
    """Sizes of the shards of a dim of `size`, cut by axes of the given sizes, outermost first.

    Each axis owns one digit of the mixed-radix shard index (nested cuts), so cuts over two axes commute. Shards are as
    even as `multiple_of` allows and the last ones may be smaller or empty: nothing is truncated, the sizes always add
    up to `size`. The largest shard is what a device has to be charged for. Raises `PlacementError` if `multiple_of`
    does not divide `size`.
    """
    if size % multiple_of:
        raise PlacementError(
            f"a dim of {size} cannot be cut at multiples of {multiple_of}",
            where=where,
            hint=f"the next size that can is {-(-size // multiple_of) * multiple_of}",
        )
    count = math.prod(parts)
    share = -(-(size // multiple_of) // count) * multiple_of
    return tuple(max(0, min(share, size - i * share)) for i in range(count))


def divides(size: int, parts: Sequence[int], *, multiple_of: int = 1) -> bool:
    """True when every shard has the same size, so that nested cuts need no padding."""
    return size % (math.prod(parts) * multiple_of) == 0
