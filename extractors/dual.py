"""The Lagrangian dual of an extraction: C, N and memory of a plan under weights, minimised kind by kind.

Under weights the cost of a plan is a sum over the blocks' kernels and transfers, which is minimised exactly by
elimination, at many batch sizes and weights in one pass; only the layouts of port groups tie the kinds of block
together. For weights λ and 1 − λ the minimum of λ·C + (1 − λ)·N is a lower bound on max(C, N) of every plan, and so it
is for every mix of plans over layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.forms import KindForm, Points, Weights
from rooflang.extractors.layouts import FloatArray, IntArray
from rooflang.extractors.readers import Keep
from rooflang.extractors.tables import Tables
from rooflang.extractors.task import Choice, Decisions, Load, Task

#: Beyond this limit on the entries of tables, it is worth dropping states first where they would be larger.
SMALL = 100_000

#: States are dropped that cannot matter while C weighs up to so many times more against N, or less.
_AROUND = 1.5

#: Weight of a block of a kind that a stage does not run.
_ABSENT = 1e-9


@dataclass(frozen=True, kw_only=True)
class KindDual:
    """The minimum for one block of a kind, `value`, by point and the layouts of the port groups `groups` that other
    kinds share.

    It was found by eliminating the variables of `form` from `tables`, over all states or those that are `alive`.
    """

    groups: tuple[int, ...]
    value: FloatArray
    tables: Tables
    form: KindForm
    alive: Sequence[IntArray] | None = None

    def decode(self, place: Mapping[int, IntArray]) -> list[tuple[Choice, dict[int, int]]]:
        """For each point the best choice where the shared groups have the layouts number `place`, and the layouts of
        all its groups."""
        borders = self.form.borders
        states = self.tables.states({borders[group]: place[group] for group in self.groups})
        named = states if self.alive is None else {v: self.alive[v][chosen] for v, chosen in states.items()}
        rows = {variable: array.tolist() for variable, array in named.items()}
        return [
            (
                {
                    value: modes[rows[variable][point]]
                    for value, (variable, modes) in self.form.makes.items()
                    if rows[variable][point] < len(modes)
                },
                {group: rows[variable][point] for group, variable in borders.items()},
            )
            for point in range(len(self.value))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """The least weighted cost of a stage, `value` (infinite: there is no plan), and decisions that have it. Unless it
    is `exact`, it is a lower bound, and the decisions may cost more or be impossible."""

    value: float
    decisions: Decisions
    exact: bool


class Dual:
    """Minima under weights at the batch sizes number `ats`. What was computed for a kind of block serves all stages and
    objectives.

    Everywhere `limit` is the number of entries that a table may have; beyond it minima become lower bounds. Raises
    `PlacementError` where at one of the batch sizes some value cannot be made in any layout.
    """

    def __init__(self, costed: CostedGraph, ats: Sequence[int], keep: Keep | None) -> None:
        self.costed = costed
        self._forms = {name: KindForm(costed, kind, ats, keep) for name, kind in costed.kinds.items()}
        self._kinds: dict[tuple[str, Points, int], KindDual] = {}
        self._alive: dict[str, tuple[Points, list[IntArray]]] = {}
        users: dict[int, set[str]] = {}
        for (kind, _), group in costed.blocks.port_group.items():
            users.setdefault(group, set()).add(kind)
        self._shared = {group for group, kinds in users.items() if len(kinds) > 1}

    def kind(self, name: str, points: Points, limit: int) -> KindDual:
        """The dual of one block of a kind."""
        key = (name, points, limit)
        if key not in self._kinds:
            form = self._forms[name]
            groups = tuple(sorted(self._shared & form.borders.keys()))
            alive, tables = None, form.tables(points)
            if len(points) == 1 and SMALL < limit < tables.largest([form.borders[group] for group in groups]):
                alive = self._alive_at(name, points[0])
                tables = form.tables(points, alive)
            value = tables.eliminate([form.borders[group] for group in groups], limit)
            value = np.broadcast_to(value, (len(points), *value.shape[1:]))
            self._kinds[key] = KindDual(groups=groups, value=value, tables=tables, form=form, alive=alive)
        return self._kinds[key]

    def _alive_at(self, name: str, point: tuple[int, Weights]) -> list[IntArray] | None:
        """States that can matter at a point: those that can at weights around it, kept for the next weights."""
        at, weights = point
        if weights.byte or weights.wave_byte or weights.live_byte:
            return None
        known = self._alive.get(name)
        if known is None or not (known[0][0][0] == at and _between(weights, known[0])):
            odds = weights.local / weights.exposed
            ends = [Weights(local=o / (1.0 + o), exposed=1.0 / (1.0 + o)) for o in (odds / _AROUND, odds * _AROUND)]
            around = tuple((at, end) for end in ends)
            known = self._alive[name] = (around, self._forms[name].alive(around))
        return known[1]

    def minimum(self, task: Task, load: Load, weights: Weights, limit: int) -> Minimum:
        """The least weighted cost of a stage of the task under its fixed boundary, at its batch size.

        Raises `PlacementError` where no plan keeps to that.
        """
        (found,) = self.minima(task, load, ((task.at, weights),), limit)
        if np.isinf(found.value):
            raise task.impossible()
        return found

    def minima(self, task: Task, load: Load, points: Points, limit: int) -> list[Minimum]:
        """The least weighted costs of a stage at points, under the task's fixed boundary."""
        tables = Tables(len(points))
        specs = self.costed.borders
        groups = {group: tables.variable(len(specs[group])) for group in sorted(self._shared)}
        kinds = {name: self.kind(name, points, limit) for name in load.counts}
        for name, kind in kinds.items():
            # Kinds that the stage does not run still need a plan: weighed by next to nothing, they follow the others.
            tables.add([groups[g] for g in kind.groups], (load.counts[name] or _ABSENT) * kind.value)
        ats, weights = [at for at, _ in points], np.array([each.exposed for _, each in points])
        for send in load.sends:
            seconds = np.array([task.sends_s(send, spec)[ats] for spec in specs[send.group]]).T
            never = np.isinf(seconds)  # at any weight, 0 too
            tables.add([groups[send.group]], np.where(never, np.inf, weights[:, None] * np.where(never, 0.0, seconds)))
        for group, variable in groups.items():
            if group in task.boundary:
                fits = [spec == task.boundary[group] for spec in specs[group]]
                tables.add([variable], np.where(fits, 0.0, np.inf)[None])
        values = np.broadcast_to(tables.eliminate((), limit), len(points)).tolist()
        exact = tables.exact and all(kind.tables.exact for kind in kinds.values())
        states = tables.states({})
        place = {group: states[variable] for group, variable in groups.items()}
        decoded = {name: kind.decode(place) for name, kind in kinds.items()}
        out = []
        for point, value in enumerate(values):
            number = {group: int(states[point]) for group, states in place.items()}
            for each in decoded.values():
                number |= each[point][1]
            boundary = {group: specs[group][layout] for group, layout in number.items()}
            choices = {name: each[point][0] for name, each in decoded.items()}
            out.append(Minimum(value=value, decisions=Decisions(choices=choices, boundary=boundary), exact=exact))
        return out


def _between(weights: Weights, ends: Points) -> bool:
    """Are weights that sum to 1 between those of two points?"""
    (_, low), (_, high) = ends
    return low.local <= weights.local <= high.local


@lru_cache(maxsize=3)
def dual(costed: CostedGraph, at: int, keep: Keep | None) -> Dual:
    """The dual for a batch size. The last ones are kept, for other stages and objectives of the same configuration."""
    return Dual(costed, (at,), keep)
