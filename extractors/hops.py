"""Which transfers can be part of a cheapest tree from the layout in which a value is made to those its readers want."""

from __future__ import annotations

import numpy as np

from rooflang.extractors.layouts import BoolArray, FloatArray


def useful_hops(seconds: FloatArray, starts: BoolArray, ends: BoolArray, readers: int) -> BoolArray:
    """Mask (n, n, b) over `seconds` (n, n, b), network seconds closed over paths.

    `starts` are the layouts in which the value may be made, `ends` those that hold a layout which one of its `readers`
    may want. Of all cheapest trees take one with the fewest hops, then the least depth, then the most replicated ends:
    it has none of the hops that are left out, for each of them could be exchanged as the comments say.
    """
    # [before, after]: before holds all of after.
    holds = (seconds == 0.0).any(axis=2)
    hubs = ends[:, None] | _worthwhile(seconds, starts, ends, readers)
    paid = np.isfinite(seconds) & ~holds[:, :, None] & hubs[None]
    # A hop to a layout that holds this one costs no more: slice it from there.
    for layout in range(len(seconds)):
        for holder in np.flatnonzero(holds[:, layout]):
            if holder != layout:
                paid[:, layout] &= ~(seconds[:, holder] <= seconds[:, layout])
    # From the end of a hop: only where it is shorter than from the start, and not back to what holds this end.
    shorter = (seconds[None] < seconds[starts][:, None]).any(axis=0)
    onward = hubs[:, None] & shorter & ~holds.T[:, :, None]
    return np.asarray(paid & (starts[:, None, None] | onward))


def _worthwhile(seconds: FloatArray, starts: BoolArray, ends: BoolArray, readers: int) -> BoolArray:
    """Mask (n, b) of layouts that nobody wants, but from which several ends are so much nearer that the hop there can
    pay."""
    origin = seconds[starts]
    with np.errstate(invalid="ignore"):
        saved = origin[:, None, ends] - seconds[None][:, :, ends]
    saved = np.sort(np.nan_to_num(np.maximum(saved, 0.0), posinf=0.0), axis=2)[:, :, -readers:].sum(axis=2)
    return np.asarray((saved > origin).any(axis=0)) & np.isfinite(origin).any(axis=0)
