"""What may lie ready for the readers of a shared value, and the least network time that it takes.

A *menu* is a set of layouts, none of which holds another, that a tree of transfers delivers. As states of one variable
between a value and its readers, menus turn a cost that depends on all readers at once into pairwise ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from rooflang.errors import LimitReached
from rooflang.extractors.layouts import BoolArray, Closure, FloatArray

#: More menus than this for one value are not listed.
MOST_MENUS = 2000

#: Entries of the largest table in which trees to three layouts are computed.
_LARGEST = 8_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Menus:
    """Menu 0 is empty. `seconds` (layouts, menus) is a lower bound on the tree's network time, exact up to three
    layouts, by the layout in which the value is made; `serves` (menus, layouts): does it hold that layout?"""

    seconds: FloatArray
    serves: BoolArray


@lru_cache(maxsize=512)
def menus(closure: Closure, wanted: tuple[int, ...], readers: int, at: int) -> Menus:
    """The menus of a value whose `readers` may want the layouts `wanted`, at batch size number `at`.

    Raises `LimitReached` where there are too many to list.
    """
    seconds = closure.seconds[:, :, at]
    sets = _antichains(closure, wanted, readers)
    direct = seconds[:, wanted]
    pairs = (seconds[:, :, None, None] + (direct[:, :, None] + direct[:, None, :])[None]).min(axis=1)
    triples = None
    if any(len(each) > 2 for each in sets) and len(seconds) ** 2 * len(wanted) ** 3 <= _LARGEST:
        triples = _triples(seconds, direct, pairs)
    costs = []
    for each in sets:
        if len(each) < 2:
            costs.append(direct[:, each[0]] if each else np.zeros(len(seconds)))
        elif len(each) == 2 or triples is None:
            costs.append(np.max([pairs[:, i, j] for i, j in combinations(each, 2)], axis=0))
        else:
            costs.append(np.max([triples[:, i, j, k] for i, j, k in combinations(each, 3)], axis=0))
    places = np.array(wanted, np.int64)
    serves = np.array([closure.holds[places[list(each)]].any(axis=0) for each in sets])
    return Menus(seconds=np.array(costs).T, serves=serves)


@lru_cache(maxsize=512)
def _antichains(closure: Closure, wanted: tuple[int, ...], readers: int) -> tuple[tuple[int, ...], ...]:
    """Sets of up to `readers` of the layouts `wanted` (by place) of which none holds another, the empty set first."""
    holds = closure.holds[np.ix_(wanted, wanted)]
    apart = ~(holds | holds.T)
    sets: list[tuple[int, ...]] = [()]
    last = sets
    for _ in range(min(readers, len(wanted))):
        last = [(*each, new) for each in last for new in range(each[-1] + 1 if each else 0, len(wanted))
                if apart[list(each), new].all()]  # fmt: skip
        sets += last
        if len(sets) > MOST_MENUS:
            raise LimitReached(f"more than {MOST_MENUS} ways to serve {readers} readers", where="extraction")
    return tuple(sets)


def _triples(seconds: FloatArray, direct: FloatArray, pairs: FloatArray) -> FloatArray:
    """The cheapest tree from each layout to each three of the wanted ones: at some layout it splits into a pair and
    one."""
    split = np.minimum(
        np.minimum(
            pairs[:, :, :, None] + direct[:, None, None, :],
            pairs[:, :, None, :] + direct[:, None, :, None],
        ),
        pairs[:, None, :, :] + direct[:, :, None, None],
    )
    return np.asarray((seconds[:, :, None, None, None] + split[None]).min(axis=1))
