"""The Lagrangian dual of an extraction: C, N and memory of a plan under weights, minimised kind by kind.

Under weights the cost of a plan is a sum over the blocks' kernels and transfers, which is minimised exactly by
elimination; only the layouts of port groups tie the kinds of block together. For weights λ and 1 − λ the minimum of
λ·C + (1 − λ)·N is a lower bound on max(C, N) of every plan, and so it is for every mix of plans over layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rooflang.extractors.costed import CostedGraph, CostedKind
from rooflang.extractors.layouts import FloatArray
from rooflang.extractors.memory import common_leaves, operand_bytes, output_bytes
from rooflang.extractors.menus import menus
from rooflang.extractors.readers import Keep, Reader, Readers, needed_values, readers_of, usable_modes
from rooflang.extractors.tables import Tables, serving
from rooflang.extractors.task import PER_WAVE, Choice, Decisions, Load, Task

#: Weight of a block of a kind that a stage does not run.
_ABSENT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What a second of C and of N count, a byte of leaves at rest, one of those that every wave has, and one of what a
    kernel works on."""

    local: float
    exposed: float
    byte: float = 0.0
    wave_byte: float = 0.0
    live_byte: float = 0.0


@dataclass(frozen=True, kw_only=True)
class KindDual:
    """The minimum for one block of a kind, `value`, by the layouts of the port groups `groups` that other kinds share.

    `makes[value]` are its variable and the modes that the variable's states stand for; `borders[group]` the variable of
    a port group.
    """

    groups: tuple[int, ...]
    value: FloatArray
    tables: Tables
    makes: Mapping[int, tuple[int, tuple[int, ...]]]
    borders: Mapping[int, int]

    def decode(self, place: Mapping[int, int]) -> tuple[Choice, dict[int, int]]:
        """The best choice where the shared groups have the layouts number `place`, and the layouts of all its
        groups."""
        states = self.tables.states({self.borders[group]: place[group] for group in self.groups})
        choice = {
            value: modes[states[variable]]
            for value, (variable, modes) in self.makes.items()
            if states[variable] < len(modes)
        }
        return choice, {group: states[variable] for group, variable in self.borders.items()}


class _KindTables:
    """Builds the tables of one kind of block under weights."""

    def __init__(self, costed: CostedGraph, kind: CostedKind, at: int, modes: Sequence[int], weights: Weights) -> None:
        self.costed, self.kind, self.at, self.weights = costed, kind, at, weights
        self.tables = Tables()
        self.makes: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.borders: dict[int, int] = {}
        for value in kind.values:
            for group in (value.port, *(g for _, g in value.exits)):
                if group >= 0 and group not in self.borders:
                    self.borders[group] = self.tables.variable(len(costed.borders[group]))
        needed = needed_values(kind)
        usable = set(modes)
        for index, value in enumerate(kind.values):
            if value.port < 0:
                self._make(index, tuple(m for m in kind.makers[index] if m in usable), optional=index not in needed)
        for index, readers in enumerate(readers_of(kind)):
            if readers.readers:
                self._read(index, readers)

    def _make(self, index: int, modes: tuple[int, ...], *, optional: bool) -> None:
        kind, at, weights = self.kind, self.at, self.weights
        chosen = np.array(modes, np.int64)
        cost = weights.local * kind.local_s[chosen, at] + weights.exposed * kind.exposed_s[chosen, at]
        if weights.byte or weights.wave_byte:
            cost = cost + np.array([self._bytes(mode) for mode in modes])
        if weights.live_byte:
            cost = cost + weights.live_byte * np.array([self._live(mode) for mode in modes])
        variable = self.tables.variable(len(modes) + optional)
        self.makes[index] = (variable, modes)
        self.tables.add((variable,), np.append(cost, 0.0) if optional else cost)

    def _bytes(self, mode: int) -> float:
        """Leaves at rest, weighed; those that several kernels share are left out, so that minima stay lower bounds."""
        kind, total = self.kind, 0.0
        for read in kind.modes[mode].leaves:
            if (kind.kind.name, read.leaf) not in common_leaves(self.costed):
                weight = self.weights.wave_byte if kind.leaf[read.leaf].role in PER_WAVE else self.weights.byte
                total += weight * float(kind.leaf_bytes[(read.leaf, read.spec)][self.at])
        return total

    def _live(self, number: int) -> float:
        mode = self.kind.modes[number]
        return operand_bytes(self.kind, mode, self.at) + output_bytes(self.kind, mode, self.at, buffers=True)

    def _source(self, index: int) -> tuple[int, list[int], bool]:
        """Variable that says in which layout a value is made, the layouts of its states, and: is there one more for
        "not"?"""
        value = self.kind.values[index]
        if value.port >= 0:
            specs = self.costed.borders[value.port]
            return self.borders[value.port], [value.layouts.number[spec] for spec in specs], False
        variable, modes = self.makes[index]
        optional = index not in needed_values(self.kind)
        return variable, [self.kind.modes[mode].out for mode in modes], optional

    def _wish(self, index: int, reader: Reader) -> tuple[int, list[int]]:
        """Variable of a reader and the layout that each of its states wants (-1: nothing)."""
        if reader.group >= 0:
            number = self.kind.values[index].layouts.number
            return self.borders[reader.group], [number[spec] for spec in self.costed.borders[reader.group]]
        variable, modes = self.makes[reader.by]
        wants = [reader.wants.get(mode, -1) for mode in modes]
        return variable, wants if reader.by in needed_values(self.kind) else [*wants, -1]

    def _read(self, index: int, found: Readers) -> None:
        closure = self.kind.values[index].layouts.closure
        source, made, optional = self._source(index)
        wishes = [self._wish(index, reader) for reader in found.readers]
        if found.alternatives:
            for variable, wants in wishes:
                self._pair(source, made, optional, variable, wants, closure.seconds[:, :, self.at])
            return
        wanted = tuple(sorted({layout for _, wants in wishes for layout in wants if layout >= 0}))
        ready = menus(closure, wanted, len(wishes) - len(found.rivals), self.at)
        between = self.tables.variable(len(ready.serves), ready.simpler)
        self._cost(source, between, ready.seconds[made], optional, np.arange(len(ready.serves)) == 0)
        for variable, wants in wishes:
            self.tables.add((between, variable), serving(ready.serves, wants))

    def _pair(
        self, source: int, made: list[int], optional: bool, variable: int, wants: list[int], seconds: FloatArray
    ) -> None:
        layouts = np.array(wants, np.int64)
        table = np.where(layouts < 0, 0.0, seconds[made][:, np.maximum(layouts, 0)])
        if source == variable:
            # What arrives by a port group leaves by the same one.
            self.tables.add((source,), self.weights.exposed * np.diagonal(table))
        else:
            self._cost(source, variable, table, optional, layouts < 0)

    def _cost(self, source: int, other: int, seconds: FloatArray, optional: bool, idle: np.ndarray) -> None:
        """Network seconds by states of two variables; a value that is not made goes with states that are idle."""
        if optional:
            seconds = np.concatenate([seconds, np.where(idle, 0.0, np.inf)[None]])
        possible = np.isfinite(seconds)
        cost = np.where(possible, self.weights.exposed * np.where(possible, seconds, 0.0), np.inf)
        self.tables.add((source, other), cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """The least weighted cost of a stage, `value`, and decisions that have it. Unless it is `exact`, it is a lower
    bound, and the decisions may cost more or be impossible."""

    value: float
    decisions: Decisions
    exact: bool


class Dual:
    """Minima under weights for one batch size. What was computed for a kind of block serves all stages and objectives.

    `limit` is the number of entries that a table may have; beyond it minima become lower bounds. With `reduce`, states
    that cannot matter are dropped first: that takes time, and makes the bounds better.
    """

    def __init__(self, costed: CostedGraph, at: int, keep: Keep | None, limit: int, *, reduce: bool = True) -> None:
        self.costed, self.at, self.limit, self.reduce = costed, at, limit, reduce
        self._modes = {
            name: np.flatnonzero(usable_modes(kind, at, keep)).tolist() for name, kind in costed.kinds.items()
        }
        self._kinds: dict[tuple[str, Weights], KindDual] = {}
        users: dict[int, set[str]] = {}
        for (kind, _), group in costed.blocks.port_group.items():
            users.setdefault(group, set()).add(kind)
        self._shared = {group for group, kinds in users.items() if len(kinds) > 1}

    def kind(self, name: str, weights: Weights) -> KindDual:
        """The dual of one block of a kind."""
        key = (name, weights)
        if key not in self._kinds:
            kind = self.costed.kinds[name]
            built = _KindTables(self.costed, kind, self.at, self._modes[name], weights)
            groups = tuple(sorted(self._shared & built.borders.keys()))
            keep = [built.borders[group] for group in groups]
            if self.reduce:
                built.tables.reduce(keep)
            self._kinds[key] = KindDual(
                groups=groups,
                value=built.tables.eliminate(keep, self.limit),
                tables=built.tables,
                makes=built.makes,
                borders=built.borders,
            )
        return self._kinds[key]

    def minimum(self, task: Task, load: Load, weights: Weights) -> Minimum:
        """The least weighted cost of a stage of the task under its fixed boundary.

        Raises `PlacementError` where no plan keeps to that.
        """
        tables = Tables()
        specs = self.costed.borders
        groups = {group: tables.variable(len(specs[group])) for group in sorted(self._shared)}
        kinds = {name: self.kind(name, weights) for name in load.counts}
        for name, kind in kinds.items():
            # Kinds that the stage does not run still need a plan: weighed by next to nothing, they follow the others.
            tables.add([groups[g] for g in kind.groups], (load.counts[name] or _ABSENT) * kind.value)
        for send in load.sends:
            seconds = np.array([task.send_s(send, spec) for spec in specs[send.group]])
            tables.add([groups[send.group]], weights.exposed * seconds)
        for group, variable in groups.items():
            if group in task.boundary:
                fits = [spec == task.boundary[group] for spec in specs[group]]
                tables.add([variable], np.where(fits, 0.0, np.inf))
        value = float(tables.eliminate((), self.limit))
        exact = tables.exact and all(kind.tables.exact for kind in kinds.values())
        if np.isinf(value):
            raise task.impossible()
        states = tables.states({})
        place = {group: states[variable] for group, variable in groups.items()}
        choices: dict[str, Choice] = {}
        for name, kind in kinds.items():
            choices[name], own = kind.decode(place)
            place |= own
        boundary = {group: specs[group][number] for group, number in place.items()}
        return Minimum(value=value, decisions=Decisions(choices=choices, boundary=boundary), exact=exact)


@lru_cache(maxsize=3)
def dual(costed: CostedGraph, at: int, keep: Keep | None, limit: int, reduce: bool = True) -> Dual:
    """The dual for a batch size. The last ones are kept, for other stages and objectives of the same configuration."""
    return Dual(costed, at, keep, limit, reduce=reduce)
