"""The states that plans can have which are faster than the best one known.

Under any weights a plan takes at least what the minima of its blocks add up to. With one state fixed that is more, and
where it is as much as the best plan takes, the state can be left out. Few are left where a bound is near (in integer
programmes: fixing by reduced costs), and tables over them are small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.errors import LimitReached
from rooflang.extractors.forms import KindForm, Points
from rooflang.extractors.layouts import FloatArray, IntArray
from rooflang.extractors.marginals import marginals
from rooflang.extractors.tables import Tables
from rooflang.ir.cut import Spec
from rooflang.sim.result import ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """A lower bound on the objective that is linear in the least costs of blocks: how many of each kind count, and what
    is added, (weights, layouts of the shared port groups …)."""

    counts: Mapping[str, float]
    added: FloatArray


Groups = Mapping[int, Sequence[Spec]]
Alive = Mapping[str, Sequence[IntArray]]


def eliminated(
    form: KindForm, groups: Groups, points: Points, alive: Sequence[IntArray], limit: int
) -> tuple[Tables, FloatArray]:
    """The tables of a kind over the states that are `alive`, and its least cost, (points, layouts of the port groups
    …), of length 1 along groups that it lacks, and infinite for layouts that are not alive."""
    tables = form.tables(points, alive)
    mine = [form.borders.get(group) for group in groups]
    least = tables.eliminate([variable for variable in mine if variable is not None], limit)
    value = np.full([len(points), *(1 if v is None else len(s) for v, s in zip(mine, groups.values()))], np.inf)
    places = [np.arange(len(points)), *_places(form, groups, alive)]
    least = np.broadcast_to(least, (len(points), *least.shape[1:]))
    value[np.ix_(*places)] = least.reshape([len(each) for each in places])
    return tables, value


def _places(form: KindForm, groups: Groups, alive: Sequence[IntArray]) -> list[IntArray]:
    """For each port group its layouts that are alive; one where the kind lacks it."""
    return [alive[form.borders[group]] if group in form.borders else np.arange(1) for group in groups]


def worthwhile(
    forms: Mapping[str, KindForm],
    groups: Groups,
    alive: Alive,
    points: Points,
    line: Line,
    most_s: float,
    limit: int,
    check: Callable[[], None] = lambda: None,
) -> dict[str, list[IntArray]] | None:
    """Of the states that are `alive` those with which the bound at a point is below `most_s`; None if there are none.

    Raises `LimitReached` where tables have more entries than `limit`, and what `check` raises between them.
    """
    left = {name: list(states) for name, states in alive.items()}
    for number, point in enumerate(points):
        found = dict[str, tuple[Tables, FloatArray]]()
        for name, form in forms.items():
            check()
            found[name] = eliminated(form, groups, (point,), left[name], limit)
        if not all(tables.exact for tables, _ in found.values()):
            raise LimitReached("too many layouts for tables", where="extraction")
        parts = {name: line.counts[name] * value[0] for name, (_, value) in found.items()}
        for name, form in forms.items():
            if line.counts[name] < 1.0:
                continue
            others = sum((part for other, part in parts.items() if other != name), line.added[number])
            lacks = tuple(axis for axis, group in enumerate(groups) if group not in form.borders)
            around = others.min(axis=lacks, keepdims=True)[np.ix_(*_places(form, groups, left[name]))]
            names = tuple(form.borders[group] for group in groups if group in form.borders)
            extra = around.reshape([1, *(len(left[name][variable]) for variable in names)])
            least = marginals(found[name][0], (names, extra / line.counts[name]))
            good = [costs[0] * line.counts[name] < most_s * (1.0 + ROUNDING) for costs in least]
            if not all(mask.any() for mask in good):
                return None
            left[name] = [states[mask] for states, mask in zip(left[name], good)]
    return left
