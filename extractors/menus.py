"""What may lie ready for the readers of a shared value, and the least network time that it takes.

A *menu* is a set of layouts, none of which holds another, that a tree of transfers delivers. As states of one variable
between a value and its readers, menus turn a cost that depends on all readers at once into pairwise ones.

The layouts that the readers of a plan want, without those that another of them holds, are such a set, and each of its
members is wanted by a reader of its own. Sets that cannot be told apart among the readers in this way are not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from rooflang.errors import LimitReached
from rooflang.extractors.layouts import BoolArray, Closure, FloatArray, IntArray

#: More menus than this for one value are not listed.
MOST_MENUS = 20_000

#: So many menus are kept for later.
_FEW = 500

#: Groups of readers that are checked for having a layout each; fewer of them list some sets in vain.
_MOST_GROUPS = 1000

#: For each reader the layouts that it may want, sorted.
Wants = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Menus:
    """Menu 0 is empty. `seconds` (layouts, menus) is a lower bound on the tree's network time, exact up to three
    layouts, by the layout in which the value is made; `serves` (menus, layouts): does it hold that layout?"""

    seconds: FloatArray
    serves: BoolArray


def menus(closure: Closure, wants: Wants, at: int) -> Menus:
    """The menus of a value whose readers may want the layouts `wants`, at batch size number `at`.

    Raises `LimitReached` where there are too many to list.
    """
    _, _, serves = _listed(closure, wants)
    return (_few if len(serves) <= _FEW else _many)(closure, wants, at)


def _menus(closure: Closure, wants: Wants, at: int) -> Menus:
    wanted, levels, serves = _listed(closure, wants)
    seconds = closure.seconds[:, :, at]
    direct = seconds[:, wanted]
    costs = [np.zeros((len(seconds), 1)), direct]
    if len(levels) > 1:
        pairs = _split(seconds, (direct[:, :, None] + direct[:, None, :]).reshape(len(seconds), -1))
        pairs = pairs.reshape(len(seconds), len(wanted), len(wanted))
        costs.append(pairs[:, levels[1][:, 0], levels[1][:, 1]])
    if len(levels) > 2:
        costs.append(_triples(seconds, direct, pairs, levels[2]))
    if len(levels) > 3:
        place = np.full((len(wanted),) * 3, -1)
        place[tuple(levels[2].T)] = np.arange(len(levels[2]))
        for sets in levels[3:]:
            thirds = [place[tuple(sets[:, each].T)] for each in map(list, combinations(range(sets.shape[1]), 3))]
            costs.append(np.max([costs[3][:, each] for each in thirds], axis=0))
    return Menus(seconds=np.concatenate(costs, axis=1), serves=serves)


#: Many menus take megabytes.
_few, _many = lru_cache(maxsize=512)(_menus), lru_cache(maxsize=16)(_menus)


@lru_cache(maxsize=128)
def _listed(closure: Closure, wants: Wants) -> tuple[IntArray, tuple[IntArray, ...], BoolArray]:
    """The layouts that any reader wants; the sets of one of them, of two, and so on, each (sets, size) by place among
    those; and which layouts each set holds, the empty one first."""
    wanted = np.unique(np.concatenate([np.array(each, np.int64) for each in wants]))
    holds = closure.holds[np.ix_(wanted, wanted)]
    after = ~(holds | holds.T) & (np.arange(len(wanted))[:, None] < np.arange(len(wanted)))
    only, room = _claims(wanted, wants)
    sets = np.arange(len(wanted))[:, None]
    levels, open_, claimed, count = [], after, only, 1
    while len(sets):
        levels.append(sets)
        count += len(sets)
        if count > MOST_MENUS:
            raise LimitReached(f"more than {MOST_MENUS} ways to serve {len(wants)} readers", where="extraction")
        grown, new = np.nonzero(open_)
        fits = (claimed[grown] + only[new] <= room).all(axis=1)
        grown, new = grown[fits], new[fits]
        sets = np.concatenate([sets[grown], new[:, None]], axis=1)
        open_, claimed = open_[grown] & after[new], claimed[grown] + only[new]
    held = closure.holds[wanted]
    serves = np.concatenate([np.zeros((1, held.shape[1]), bool), *(held[each].any(axis=1) for each in levels)])
    return wanted, tuple(levels), serves


def _claims(wanted: IntArray, wants: Wants) -> tuple[IntArray, IntArray]:
    """Masks (layouts, groups of readers): is the layout wanted by nobody outside the group? And how many it has.

    A set of layouts has a reader of its own for each if no group is the only one for more layouts than it has readers
    (Hall's theorem). Groups that are no union of those that want one layout say nothing more.
    """
    who = [sum(1 << reader for reader, each in enumerate(wants) if layout in each) for layout in wanted.tolist()]
    groups = {0}
    for mine in set(who):
        if len(groups) < _MOST_GROUPS:
            groups |= {group | mine for group in groups}
    order = sorted(groups - {0})
    only = np.array([[mine | group == group for group in order] for mine in who], np.int64)
    return only.reshape(len(who), len(order)), np.array([group.bit_count() for group in order], np.int64)


def _split(seconds: FloatArray, parts: FloatArray) -> FloatArray:
    """(layouts, trees) from (layouts, trees): the cheapest way to go first to some layout, from where the rest of the
    tree takes `parts`."""
    out = seconds[:, :1] + parts[:1]
    for middle in range(1, len(seconds)):
        np.minimum(out, seconds[:, middle, None] + parts[middle], out=out)
    return np.asarray(out)


def _triples(seconds: FloatArray, direct: FloatArray, pairs: FloatArray, sets: IntArray) -> FloatArray:
    """The cheapest tree from each layout to each three of the wanted ones: at some layout it splits into a pair and
    one."""
    i, j, k = sets.T
    parts = pairs[:, i, j] + direct[:, k]
    np.minimum(parts, pairs[:, i, k] + direct[:, j], out=parts)
    np.minimum(parts, pairs[:, j, k] + direct[:, i], out=parts)
    return _split(seconds, parts)
