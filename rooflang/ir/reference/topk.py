"""Top-k as a monoid on candidates: the order is total (value descending, id ascending), so that ties are decided alike
everywhere. A state is (values, ids) and what else is known of each candidate, the candidates along the last axis;
missing ones are (−∞, `NO_ID`, 0)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rooflang.ir.exact import Exact, is_exact
from rooflang.ir.reference.base import NO_ID, Array, State


def best(values: Array, ids: Array, count: int, *carried: Array) -> State:
    """The `count` best candidates, best first, padded if there are fewer. `ids` broadcasts to `values`; arrays in
    `carried` go with their candidates."""
    candidates = [values, np.broadcast_to(ids, values.shape), *carried]
    missing = max(0, count - values.shape[-1])
    if missing:
        padding = [(0, 0)] * (values.ndim - 1) + [(0, missing)]
        fill: tuple[Any, ...] = (-np.inf, NO_ID, *(Exact(0) if is_exact(a) else 0.0 for a in carried))
        candidates = [np.pad(a, padding, constant_values=f) for a, f in zip(candidates, fill, strict=True)]
    last = np.where(candidates[1] == NO_ID, np.iinfo(np.int64).max, candidates[1])
    order = np.lexsort((last, -candidates[0]), axis=-1)[..., :count]
    return tuple(np.take_along_axis(a, order, -1) for a in candidates)


def merge(a: State, b: State, count: int) -> State:
    """The best candidates of two lists."""
    values, ids, *carried = (np.concatenate(both, -1) for both in zip(a, b, strict=True))
    return best(values, ids, count, *carried)


def chosen(ids: Array, among: Array) -> Array:
    """Which ids of `among` occur along the last axis of `ids`: a mask whose last axis runs over `among`."""
    return np.asarray((ids[..., :, None] == among).any(-2))
