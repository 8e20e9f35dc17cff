"""Top-k as a monoid on candidates: the order is total (value descending, id ascending), so that ties are decided alike
everywhere. A state is (values, ids), the candidates along the last axis; missing ones are (−∞, `NO_ID`)."""

from __future__ import annotations

import numpy as np

from rooflang.ir.reference.base import NO_ID, Array, State


def best(values: Array, ids: Array, count: int) -> State:
    """The `count` best candidates, best first, padded if there are fewer. `ids` broadcasts to `values`."""
    ids = np.broadcast_to(ids, values.shape)
    missing = max(0, count - values.shape[-1])
    if missing:
        padding = [(0, 0)] * (values.ndim - 1) + [(0, missing)]
        values = np.pad(values, padding, constant_values=-np.inf)
        ids = np.pad(ids, padding, constant_values=NO_ID)
    last = np.where(ids == NO_ID, np.iinfo(np.int64).max, ids)
    order = np.lexsort((last, -values), axis=-1)[..., :count]
    return np.take_along_axis(values, order, -1), np.take_along_axis(ids, order, -1)


def merge(a: State, b: State, count: int) -> State:
    """The best candidates of two lists."""
    return best(np.concatenate([a[0], b[0]], -1), np.concatenate([a[1], b[1]], -1), count)


def chosen(ids: Array, among: Array) -> Array:
    """Which ids of `among` occur along the last axis of `ids`: a mask whose last axis runs over `among`."""
    return np.asarray((ids[..., :, None] == among).any(-2))
