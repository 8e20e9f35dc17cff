"""A block's plans as states of variables: a sum of small tables whose minimum, under any weights, is the best plan.

A variable says by which mode a value is made, in which layout a port group is handed over, or which menu of layouts
lies ready for the readers of a value. The tables are built once for a kind of block and some batch sizes; weights only
scale them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.cost.tiers import HBM
from rooflang.extractors.costed import CostedGraph, CostedKind
from rooflang.extractors.layouts import BoolArray, Closure, FloatArray, IntArray
from rooflang.extractors.memory import common_leaves, operand_bytes, output_bytes
from rooflang.extractors.menus import Wants, menus
from rooflang.extractors.readers import Keep, Reader, Readers, needed_values, readers_of, usable_modes
from rooflang.extractors.tables import Names, Tables, serving
from rooflang.extractors.task import PER_WAVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What a second of C and of N count, a byte of leaves at rest, one of those that every wave has, and one of what a
    kernel works on."""

    local: float
    exposed: float
    byte: float = 0.0
    wave_byte: float = 0.0
    live_byte: float = 0.0


#: Points at which minima are asked for: the number of a batch size, and weights.
Points = tuple[tuple[int, Weights], ...]


#: The row of tables that are the same at all batch sizes.
_FIRST = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """A table: seconds of C and of N by batch size (or 1 for all) and the states of the variables `names`, and what no
    weights change: infinity for what is impossible."""

    names: Names
    local_s: FloatArray | None = None
    exposed_s: FloatArray | None = None
    fixed: FloatArray | None = None

    def weighed(
        self, rows: IntArray, local: FloatArray, exposed: FloatArray, alive: Sequence[IntArray] | None
    ) -> FloatArray:
        """The table at points: batch sizes (by row) and weights; over all states or those that are `alive`."""
        states = None if alive is None else [alive[name] for name in self.names]
        tables: list[FloatArray] = []
        for weight, seconds in ((local, self.local_s), (exposed, self.exposed_s), (None, self.fixed)):
            if seconds is not None:
                mine = rows if len(seconds) > 1 else _FIRST
                table = seconds[mine] if states is None else seconds[np.ix_(mine, *states)]
                tables.append(table if weight is None else weight.reshape([-1] + [1] * len(self.names)) * table)
        return sum(tables[1:], tables[0])


class KindForm:
    """One kind of block at the batch sizes number `ats`; `keep` says which modes may be used.

    `makes[value]` are the variable that says how a value is made and the modes that the variable's states stand for (a
    further state: it is not made); `borders[group]` is the variable of a port group. With `modes` only those are used.
    Raises `PlacementError` where at some batch size nothing is left that makes a value which every plan needs.
    """

    def __init__(
        self,
        costed: CostedGraph,
        kind: CostedKind,
        ats: Sequence[int],
        keep: Keep | None,
        modes: Collection[int] | None = None,
    ) -> None:
        self.costed, self.kind, self.ats = costed, kind, tuple(ats)
        self.makes: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.borders: dict[int, int] = {}
        self._states: list[int] = []
        self._parts: list[_Part] = []
        self._needed = needed_values(kind)
        for value in kind.values:
            for group in (value.port, *(g for _, g in value.exits)):
                if group >= 0 and group not in self.borders:
                    self.borders[group] = self._variable(len(costed.borders[group]))
        usable = np.array([usable_modes(kind, at, keep) for at in self.ats])
        if modes is not None:
            usable &= np.isin(np.arange(len(kind.modes)), list(modes))
        for index, value in enumerate(kind.values):
            if value.port < 0:
                self._make(index, usable)
        for index, readers in enumerate(readers_of(kind)):
            if readers.readers:
                self._read(index, readers)

    def alive(self, points: Points, among: Sequence[IntArray] | None = None) -> list[IntArray]:
        """For each variable the states (of some) that can be part of a minimum at the points, or at weights between
        theirs, whatever the layouts of port groups."""
        left = self.tables(points, among).alive(list(self.borders.values()))
        return left if among is None else [states[mine] for states, mine in zip(among, left)]

    def largest(self, groups: Collection[int]) -> int:
        """Entries a point of the largest table with which all variables are eliminated but those of port groups."""
        out = Tables()
        for states in self._states:
            out.variable(states)
        for part in self._parts:
            out.add(part.names, np.zeros([1] * (len(part.names) + 1)))
        return out.largest([self.borders[group] for group in groups])

    def tables(self, points: Points, alive: Sequence[IntArray] | None = None) -> Tables:
        """The sum of tables at points, over all states or those that are `alive`."""
        rows = np.array([self.ats.index(at) for at, _ in points])
        local, exposed, byte, wave_byte, live_byte = (
            np.array([getattr(weights, name) for _, weights in points]) for name in Weights.__slots__
        )
        out = Tables(len(points))
        for variable, states in enumerate(self._states):
            out.variable(states if alive is None else len(alive[variable]))
        for part in self._parts:
            out.add(part.names, part.weighed(rows, local, exposed, alive))
        if byte.any() or wave_byte.any() or live_byte.any():
            for variable, sizes in self._bytes():
                rests, per_wave, live = (table[rows] for table in sizes)
                total = byte[:, None] * rests + wave_byte[:, None] * per_wave + live_byte[:, None] * live
                out.add((variable,), total if alive is None else total[:, alive[variable]])
        return out

    def _variable(self, states: int) -> int:
        self._states.append(states)
        return len(self._states) - 1

    def _make(self, index: int, usable: BoolArray) -> None:
        kind, optional = self.kind, index not in self._needed
        modes = [mode for mode in kind.makers[index] if usable[:, mode].any()]
        good = usable[:, modes]
        local, exposed = (
            np.where(good, table[np.ix_(modes, self.ats)].T, 0.0) for table in (kind.local_s, kind.exposed_s)
        )
        never = np.where(good, 0.0, np.inf)
        if optional:
            unmade = np.zeros((len(self.ats), 1))
            local, exposed, never = (np.concatenate([table, unmade], axis=1) for table in (local, exposed, never))
        variable = self._variable(len(modes) + optional)
        self.makes[index] = (variable, tuple(modes))
        self._parts.append(_Part(names=(variable,), local_s=local, exposed_s=exposed, fixed=_where_needed(never)))

    def _bytes(self) -> Iterator[tuple[int, tuple[FloatArray, FloatArray, FloatArray]]]:
        """For each variable of a value, by batch size and state: bytes of leaves at rest, of those that every wave has,
        and of what the kernel works on. Leaves that several kernels share or that lie elsewhere than in HBM are left
        out, so that minima stay lower bounds on what HBM holds."""
        kind, ats, common = self.kind, list(self.ats), common_leaves(self.costed)
        for index, (variable, modes) in self.makes.items():
            shape = (len(ats), len(modes) + (index not in self._needed))
            rests, per_wave, live = np.zeros(shape), np.zeros(shape), np.zeros(shape)
            for state, number in enumerate(modes):
                mode = kind.modes[number]
                for read in mode.leaves:
                    if read.tier == HBM and (kind.kind.name, read.leaf) not in common:
                        size = kind.leaf_bytes[(read.leaf, read.spec)][ats]
                        (per_wave if kind.leaf[read.leaf].role in PER_WAVE else rests)[:, state] += size
                live[:, state] = [
                    operand_bytes(kind, mode, at) + output_bytes(kind, mode, at, buffers=True) for at in ats
                ]
            yield variable, (rests, per_wave, live)

    def _source(self, index: int) -> tuple[int, list[int], bool]:
        """Variable that says in which layout a value is made, the layouts of its states, and: is there one more for
        "not"?"""
        value = self.kind.values[index]
        if value.port >= 0:
            specs = self.costed.borders[value.port]
            return self.borders[value.port], [value.layouts.number[spec] for spec in specs], False
        variable, modes = self.makes[index]
        return variable, [self.kind.modes[mode].out for mode in modes], index not in self._needed

    def _wish(self, index: int, reader: Reader) -> tuple[int, list[int]]:
        """Variable of a reader and the layout that each of its states wants (-1: nothing)."""
        if reader.group >= 0:
            number = self.kind.values[index].layouts.number
            return self.borders[reader.group], [number[spec] for spec in self.costed.borders[reader.group]]
        variable, modes = self.makes[reader.by]
        wants = [reader.wants.get(mode, -1) for mode in modes]
        return variable, wants if reader.by in self._needed else [*wants, -1]

    def _read(self, index: int, found: Readers) -> None:
        closure = self.kind.values[index].layouts.closure
        source, made, optional = self._source(index)
        wishes = [self._wish(index, reader) for reader in found.readers]
        if found.alternatives:
            for variable, wants in wishes:
                self._pair(source, made, optional, variable, wants, closure)
            return
        ready = [menus(closure, _wants(wishes, found.rivals), at) for at in self.ats]
        serves = ready[0].serves
        between = self._variable(len(serves))
        least = np.array([each.seconds[made] for each in ready])
        self._cost((source, between), least, optional, np.arange(len(serves)) == 0)
        for variable, wants in wishes:
            self._parts.append(_Part(names=(between, variable), fixed=serving(serves, wants)[None]))

    def _pair(
        self, source: int, made: list[int], optional: bool, variable: int, wants: list[int], closure: Closure
    ) -> None:
        before, layouts, ats = (np.array(each, np.int64) for each in (made, wants, self.ats))
        seconds = closure.seconds[np.ix_(before, np.maximum(layouts, 0), ats)].transpose(2, 0, 1)
        table = np.where(layouts < 0, 0.0, seconds)
        if source == variable:
            # What arrives by a port group leaves by the same one.
            self._cost((source,), np.diagonal(table, axis1=1, axis2=2), False, layouts < 0)
        else:
            self._cost((source, variable), table, optional, layouts < 0)

    def _cost(self, names: Names, seconds: FloatArray, optional: bool, idle: BoolArray) -> None:
        """Network seconds by batch size and states of variables; a value that is not made goes with idle states."""
        if optional:
            unmade = np.broadcast_to(np.where(idle, 0.0, np.inf), (len(seconds), 1, len(idle)))
            seconds = np.concatenate([seconds, unmade], axis=1)
        possible = np.isfinite(seconds)
        fixed = _where_needed(np.where(possible, 0.0, np.inf))
        self._parts.append(_Part(names=names, exposed_s=np.where(possible, seconds, 0.0), fixed=fixed))


def _wants(wishes: Sequence[tuple[int, list[int]]], rivals: Sequence[tuple[int, int]]) -> Wants:
    """The layouts that each reader may want, rivals taken together."""
    of = {number: {layout for layout in wants if layout >= 0} for number, (_, wants) in enumerate(wishes)}
    for one, other in rivals:
        of[one] |= of.pop(other)
    return tuple(tuple(sorted(layouts)) for layouts in of.values())


def _where_needed(never: FloatArray) -> FloatArray | None:
    """A table of zeros and infinities; none if all is possible, one for all batch sizes if they agree."""
    if not never.any():
        return None
    return never[:1] if (never == never[:1]).all() else never
