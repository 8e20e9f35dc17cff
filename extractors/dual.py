"""The Lagrangian dual of an extraction: C, N and memory of a plan under weights, minimised kind by kind.

Under weights the cost of a plan is a sum over the blocks' kernels and transfers, which is minimised exactly by
elimination, at many batch sizes and weights in one pass; only the layouts of port groups tie the kinds of block
together. For weights λ and 1 − λ the minimum of λ·C + (1 − λ)·N is a lower bound on max(C, N) of every plan, and so it
is for every mix of plans over layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from rooflang.extractors.core import WIDE, Diffusion, core
from rooflang.extractors.costed import CostedGraph
from rooflang.extractors.forms import KindForm, Points, Weights
from rooflang.extractors.kept import Kept
from rooflang.extractors.layouts import FloatArray, IntArray
from rooflang.extractors.readers import Keep
from rooflang.extractors.tables import Tables
from rooflang.extractors.task import Choice, Decisions, Load, Task
from rooflang.ir.cut import Spec
from rooflang.sim.result import ROUNDING

#: Beyond this limit on the entries of tables, it is worth dropping states first where they would be larger.
SMALL = 100_000

#: On more than so many axes, and above so many entries of the largest table without a limit, most states are left out
#: first, whatever the limit.
FEW_AXES, FAR = 2, 1_000_000_000

#: The entries that tables may have then, whatever the limit: they are over fast, and kept for each point.
CORE = 16_000_000

#: Entries of tables that are kept in all (8 bytes each).
_KEPT = 100_000_000

#: States are dropped that cannot matter while C weighs up to so many times more against N, or less.
_AROUND = 1.5

#: Weight of a block of a kind that a stage does not run.
ABSENT = 1e-9


@dataclass(frozen=True, kw_only=True)
class KindDual:
    """The minimum for one block of a kind, `value`, by point and the layouts of the port groups `groups` that other
    kinds share; and `reached`, what the plans cost that `decode` finds: more where the minimum is only a bound,
    infinite where there is none.

    It was found by eliminating the variables of `form` from `tables`, over all states or those that are `alive`.
    """

    groups: tuple[int, ...]
    value: FloatArray
    reached: FloatArray
    tables: Tables
    form: KindForm
    exact: bool
    alive: Sequence[IntArray] | None = None

    @property
    def entries(self) -> int:
        """Numbers in the tables that are kept for decoding."""
        return self.tables.entries

    def decode(self, place: Mapping[int, IntArray]) -> list[tuple[Choice, dict[int, int]]]:
        """For each point the best choice where the shared groups have the layouts number `place`, and the layouts of
        all its groups."""
        borders = self.form.borders
        states = self.tables.states({borders[group]: self._left(borders[group], place[group]) for group in self.groups})
        named = states if self.alive is None else {v: self.alive[v][chosen] for v, chosen in states.items()}
        rows = {variable: array.tolist() for variable, array in named.items()}
        return [
            (
                {
                    value: modes[rows[variable][point]]
                    for value, (variable, modes) in self.form.makes.items()
                    if rows[variable][point] < len(modes)
                },
                {
                    group: int(place[group][point]) if group in self.groups else rows[variable][point]
                    for group, variable in borders.items()
                },
            )
            for point in range(len(self.value))
        ]

    def _left(self, variable: int, states: IntArray) -> IntArray:
        """States of a variable by their numbers among those that are alive; the next one for one that is not."""
        if self.alive is None:
            return states
        mine = self.alive[variable]
        return np.minimum(np.searchsorted(mine, states), len(mine) - 1)


@dataclass(frozen=True, kw_only=True)
class KindDuals:
    """As `KindDual`, each point by itself."""

    groups: tuple[int, ...]
    value: FloatArray
    reached: FloatArray
    exact: bool
    points: tuple[KindDual, ...]

    @classmethod
    def of(cls, points: Sequence[KindDual]) -> KindDuals:
        """Several duals of one kind side by side."""
        value, reached = (np.concatenate([getattr(p, name) for p in points]) for name in ("value", "reached"))
        exact = all(p.exact for p in points)
        return cls(groups=points[0].groups, value=value, reached=reached, exact=exact, points=tuple(points))

    @property
    def entries(self) -> int:
        """As `KindDual.entries`."""
        return sum(each.entries for each in self.points)

    def decode(self, place: Mapping[int, IntArray]) -> list[tuple[Choice, dict[int, int]]]:
        """As `KindDual.decode`."""
        return [
            found
            for number, each in enumerate(self.points)
            for found in each.decode({group: states[number : number + 1] for group, states in place.items()})
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Joined:
    """Least costs of a stage by point, and the layouts of the shared port groups that have them."""

    values: FloatArray
    place: Mapping[int, IntArray]
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """The least weighted cost of a stage, `value` (infinite: there is no plan), and decisions that have it. Unless it
    is `exact`, it is a lower bound, and the decisions may cost more or be impossible."""

    value: float
    decisions: Decisions
    exact: bool


class Dual:
    """Minima under weights at the batch sizes number `ats`. What was computed for a kind of block serves all stages and
    objectives. `forms` are the kinds as sums of tables.

    Everywhere `limit` is the number of entries that a table may have; beyond it minima become lower bounds. Raises
    `PlacementError` where at one of the batch sizes some value cannot be made in any layout.
    """

    def __init__(self, costed: CostedGraph, ats: Sequence[int], keep: Keep | None) -> None:
        self.costed = costed
        self.forms = {name: KindForm(costed, kind, ats, keep) for name, kind in costed.kinds.items()}
        self._kinds: Kept[tuple[str, Points, int], KindDual | KindDuals] = Kept(_KEPT)
        self._near: dict[tuple[str, tuple[int, Weights]], tuple[KindForm, float]] = {}
        self._alive: dict[str, tuple[Points, list[IntArray]]] = {}
        self._shared = shared_groups(costed).keys()
        many = len(costed.cost.mesh.axes) > FEW_AXES
        self._far = {name: many and form.largest(self._groups(form)) > FAR for name, form in self.forms.items()}

    @property
    def far(self) -> bool:
        """Are there kinds that tables are far too small for, so that each point takes long?"""
        return any(self._far.values())

    def _groups(self, form: KindForm) -> tuple[int, ...]:
        return tuple(sorted(self._shared & form.borders.keys()))

    def kind(self, name: str, points: Points, limit: int) -> KindDual | KindDuals:
        """The dual of one block of a kind; what was not asked for lately is computed again."""
        limit = CORE if self._far[name] else limit
        return self._kinds.get((name, points, limit), lambda: self._of(name, points, limit))

    def _of(self, name: str, points: Points, limit: int) -> KindDual | KindDuals:
        if self._far[name]:
            return KindDuals.of([self._of_core(name, point, limit) for point in points])
        return self._of_all(name, points, limit)

    def _of_all(self, name: str, points: Points, limit: int) -> KindDual:
        form = self.forms[name]
        groups = self._groups(form)
        alive, tables = None, form.tables(points)
        if len(points) == 1 and SMALL < limit < tables.largest([form.borders[group] for group in groups]):
            alive = self._alive_at(name, points[0])
            tables = form.tables(points, alive)
        value = tables.eliminate([form.borders[group] for group in groups], limit)
        value = np.broadcast_to(value, (len(points), *value.shape[1:]))
        return KindDual(
            groups=groups, value=value, reached=value, tables=tables, form=form, exact=tables.exact, alive=alive
        )

    def _of_core(self, name: str, point: tuple[int, Weights], limit: int) -> KindDual:
        """The dual of a kind whose states are too many for tables, by those that can matter at a point: of two passes,
        the second one has the menus that are left when the first has left out modes."""
        near = self._near.get((name, point))
        if near is None:
            near = self._near[name, point] = self._without_worst(self.forms[name], point)
        form, floor = near
        groups, tables = self._groups(form), form.tables((point,))
        keep = [form.borders[group] for group in groups]
        found = core(Diffusion(tables.counts, tables.parts), keep, partial(tables.largest, keep), limit)
        floor = min(floor, found.floor)
        tables = form.tables((point,), found.alive)
        least = tables.eliminate(keep, limit)
        shape = [len(self.costed.borders[group]) for group in groups]
        reached = np.full((1, *shape), np.inf)
        reached[np.ix_(np.arange(1), *(found.alive[variable] for variable in keep))] = least
        return KindDual(
            groups=groups,
            value=np.minimum(reached, floor),
            reached=reached,
            tables=tables,
            form=form,
            exact=tables.exact,
            alive=found.alive,
        )

    def _without_worst(self, form: KindForm, point: tuple[int, Weights]) -> tuple[KindForm, float]:
        """A kind without modes of which every plan costs at least so much."""
        tables = form.tables((point,))
        diffusion = Diffusion(tables.counts, tables.parts)
        diffusion.cut(WIDE)
        found = diffusion.core
        modes = [
            modes[state]
            for variable, modes in form.makes.values()
            for state in found.alive[variable]
            if state < len(modes)
        ]
        return KindForm(self.costed, form.kind, form.ats, None, modes), found.floor

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
            known = self._alive[name] = (around, self.forms[name].alive(around))
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
        """The least weighted costs of a stage at points, under the task's fixed boundary. Raises `LimitReached`."""
        specs, kinds = self.costed.borders, dict[str, KindDual | KindDuals]()
        for name in load.counts:
            task.check()
            kinds[name] = self.kind(name, points, limit)
        least = self._joined(task, load, points, {name: kind.value for name, kind in kinds.items()}, limit)
        best = least
        if any(kind.reached is not kind.value for kind in kinds.values()):
            best = self._joined(task, load, points, {name: kind.reached for name, kind in kinds.items()}, limit)
        exact = least.exact and all(kind.exact for kind in kinds.values())
        decoded = {name: kind.decode(best.place) for name, kind in kinds.items()}
        out = []
        for point, value in enumerate(least.values.tolist()):
            number = {group: int(states[point]) for group, states in best.place.items()}
            for each in decoded.values():
                number |= each[point][1]
            boundary = {group: specs[group][layout] for group, layout in number.items()}
            choices = {name: each[point][0] for name, each in decoded.items()}
            mine = exact and bool(best.values[point] <= value * (1.0 + ROUNDING))
            out.append(Minimum(value=value, decisions=Decisions(choices=choices, boundary=boundary), exact=mine))
        return out

    def _joined(self, task: Task, load: Load, points: Points, costs: Mapping[str, FloatArray], limit: int) -> _Joined:
        """The least costs of a stage, given those of one block of each kind by the layouts of its port groups."""
        tables, specs = Tables(len(points)), self.costed.borders
        groups = {group: tables.variable(len(specs[group])) for group in self._shared}
        for name, cost in costs.items():
            # Kinds that the stage does not run still need a plan: weighed by next to nothing, they follow the others.
            shared = self._groups(self.forms[name])
            tables.add([groups[group] for group in shared], (load.counts[name] or ABSENT) * cost)
        ats, weights = [at for at, _ in points], np.array([each.exposed for _, each in points])
        for send in load.sends:
            seconds = np.array([task.sends_s(send, spec)[ats] for spec in specs[send.group]]).T
            never = np.isinf(seconds)  # at any weight, 0 too
            tables.add([groups[send.group]], np.where(never, np.inf, weights[:, None] * np.where(never, 0.0, seconds)))
        for group, variable in groups.items():
            if group in task.boundary:
                fits = [spec == task.boundary[group] for spec in specs[group]]
                tables.add([variable], np.where(fits, 0.0, np.inf)[None])
        values = np.broadcast_to(tables.eliminate((), limit), len(points))
        states = tables.states({})
        place = {group: states[variable] for group, variable in groups.items()}
        return _Joined(values=values, place=place, exact=tables.exact)


def shared_groups(costed: CostedGraph) -> dict[int, Sequence[Spec]]:
    """The layouts of the port groups that several kinds of block share, by group in ascending order."""
    users: dict[int, set[str]] = {}
    for (kind, _), group in costed.blocks.port_group.items():
        users.setdefault(group, set()).add(kind)
    return {group: costed.borders[group] for group in sorted(users) if len(users[group]) > 1}


def _between(weights: Weights, ends: Points) -> bool:
    """Are weights that sum to 1 between those of two points?"""
    (_, low), (_, high) = ends
    return low.local <= weights.local <= high.local


@lru_cache(maxsize=3)
def dual(costed: CostedGraph, at: int, keep: Keep | None) -> Dual:
    """The dual for a batch size. The last ones are kept, for other stages and objectives of the same configuration."""
    return Dual(costed, (at,), keep)
