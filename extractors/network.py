"""The flow network of a costed graph: which columns and rows the integer programme has, for every batch size and stage.

For each kind of block one copy. A column per mode (does its kernel run so?) and per layout of a port group. Every
reader of a value gets one unit of flow: from the layout in which the value is made (or arrives), over paid transfers
closed over paths, by a free local slice to the layout that the reader's mode wants. Where a value has several
readers, a transfer is a column of its own that all of their flows may use; a reader's flow may then also go on from a
transfer's end, so that readers can share the first part of their ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rooflang.extractors.costed import CostedGraph, CostedKind, Value
from rooflang.extractors.hops import useful_hops
from rooflang.extractors.layouts import BoolArray, FloatArray, IntArray
from rooflang.extractors.readers import Readers, needed_values, readers_of
from rooflang.ir.cut import Spec

#: Who reads a value: by layout the columns (modes, or layouts of a port group) that want it so; does every plan have
#: it?
_Wants = tuple[dict[int, list[int]], bool]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shared:
    """The transfers of a value with several readers.

    `makers[layout]` are the columns that put the value there, `wants[layout]` those that want it so, `column` (n, n)
    the columns of the transfers, -1 where there is none. `holds` is the closure's.
    """

    kind: int
    value: int
    readers: int
    makers: dict[int, list[int]]
    wants: dict[int, list[int]]
    holds: BoolArray
    column: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Columns and rows. Columns: the modes of each kind from `mode_start[kind]`, layouts of port groups (`border`),
    then arcs.

    Per column: `kind` (its block kind by number, -1: none), `table` (its network seconds are that row of `seconds`; -1:
    none), `parent` (a flow needs that column's transfer; -1: none), `free` (usable only where `seconds` is 0). Rows:
    entries (`row`, `col`, `sign`) and bounds.
    """

    kinds: tuple[CostedKind, ...]
    mode_start: tuple[int, ...]
    border: dict[tuple[int, Spec], int]
    kind: IntArray
    table: IntArray
    parent: IntArray
    free: BoolArray
    seconds: FloatArray
    offset: tuple[tuple[int, ...], ...]
    shared: tuple[Shared, ...]
    row: IntArray
    col: IntArray
    sign: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def columns(self) -> int:
        return len(self.kind)

    @property
    def integral(self) -> int:
        """Columns before this number are decisions, the others are flows."""
        return self.mode_start[-1] + len(self.border)


@lru_cache(maxsize=8)
def network(costed: CostedGraph) -> Network:
    """The network of a costed graph. It is kept: batch sizes, stages and objectives change numbers only."""
    return _Builder(costed).build()


class _Builder:
    def __init__(self, costed: CostedGraph) -> None:
        self.costed = costed
        self.kinds = tuple(costed.kinds.values())
        self.start = [0]
        for kind in self.kinds:
            self.start.append(self.start[-1] + len(kind.modes))
        self.border: dict[tuple[int, Spec], int] = {}
        for group, specs in costed.borders.items():
            for spec in specs:
                self.border[(group, spec)] = self.start[-1] + len(self.border)
        decisions = self.start[-1] + len(self.border)
        self.kind = [number for number, kind in enumerate(self.kinds) for _ in kind.modes] + [-1] * len(self.border)
        self.table = [-1] * decisions
        self.parent = [-1] * decisions
        self.free = [False] * decisions
        self.offset: list[tuple[int, ...]] = []
        self.tables: list[FloatArray] = []
        self.shared: list[Shared] = []
        self.rows: list[tuple[list[int], list[float], float, float]] = []

    def build(self) -> Network:
        at = 0
        for kind in self.kinds:
            starts = []
            for value in kind.values:
                starts.append(at)
                table = value.layouts.closure.seconds
                self.tables.append(table.reshape(-1, table.shape[-1]))
                at += len(self.tables[-1])
            self.offset.append(tuple(starts))
        for group in self.costed.borders:
            columns = [column for (g, _), column in self.border.items() if g == group]
            self._row(columns, [1.0] * len(columns), 1.0, 1.0)
        for number, kind in enumerate(self.kinds):
            self._kind(number, kind)
        lengths = [len(columns) for columns, _, _, _ in self.rows]
        return Network(
            kinds=self.kinds,
            mode_start=tuple(self.start),
            border=self.border,
            kind=np.array(self.kind, np.int64),
            table=np.array(self.table, np.int64),
            parent=np.array(self.parent, np.int64),
            free=np.array(self.free, bool),
            seconds=np.concatenate(self.tables),
            offset=tuple(self.offset),
            shared=tuple(self.shared),
            row=np.repeat(np.arange(len(self.rows)), lengths),
            col=np.array([c for columns, _, _, _ in self.rows for c in columns], np.int64),
            sign=np.array([s for _, signs, _, _ in self.rows for s in signs], np.float64),
            low=np.array([low for _, _, low, _ in self.rows]),
            high=np.array([high for _, _, _, high in self.rows]),
        )

    def _row(self, columns: list[int], signs: list[float], low: float, high: float) -> None:
        self.rows.append((columns, signs, low, high))

    def _arc(self, kind: int, table: int, *, parent: int = -1, free: bool = False) -> int:
        self.kind.append(kind)
        self.table.append(table)
        self.parent.append(parent)
        self.free.append(free)
        return len(self.kind) - 1

    def _kind(self, number: int, kind: CostedKind) -> None:
        needed = needed_values(kind)
        for index, (value, found) in enumerate(zip(kind.values, readers_of(kind))):
            makers = self._makers(number, kind, index, value)
            if value.port < 0:
                columns = [self.start[number] + mode for mode in kind.makers[index]]
                self._row(columns, [1.0] * len(columns), 1.0 if index in needed else 0.0, 1.0)
            wants = self._wants(number, value, found)
            if len(wants) == 1:
                self._direct(number, index, value, makers, wants[0])
            elif wants:
                self._shared(number, index, value, makers, wants)

    def _wants(self, number: int, value: Value, found: Readers) -> list[_Wants]:
        """The readers by columns; rivals, of which at most one is there, are one."""
        out: list[_Wants] = []
        for reader in found.readers:
            wants: dict[int, list[int]] = {}
            for mode, layout in reader.wants.items():
                wants.setdefault(layout, []).append(self.start[number] + mode)
            if reader.group >= 0:
                for spec in self.costed.borders[reader.group]:
                    wants[value.layouts.number[spec]] = [self.border[(reader.group, spec)]]
            out.append((wants, reader.always))
        for one, other in found.rivals:
            for layout, columns in out[one][0].items():
                out[other][0].setdefault(layout, []).extend(columns)
        absorbed = {one for one, _ in found.rivals}
        return [wants for place, wants in enumerate(out) if place not in absorbed]

    def _makers(self, number: int, kind: CostedKind, index: int, value: Value) -> dict[int, list[int]]:
        out: dict[int, list[int]] = {}
        if value.port >= 0:
            for spec in self.costed.borders[value.port]:
                out[value.layouts.number[spec]] = [self.border[(value.port, spec)]]
        for mode in kind.makers[index]:
            out.setdefault(kind.modes[mode].out, []).append(self.start[number] + mode)
        return out

    def _direct(self, number: int, index: int, value: Value, makers: dict[int, list[int]], reader: _Wants) -> None:
        """One reader: a path from each layout in which it is made to each that is wanted."""
        wants, always = reader
        seconds = value.layouts.closure.seconds
        possible = np.asarray(np.isfinite(seconds).any(axis=2))
        count, base = len(seconds), self.offset[number][index]
        out: dict[int, list[int]] = {made: [] for made in makers}
        into: dict[int, list[int]] = {wanted: [] for wanted in wants}
        for made in makers:
            for wanted in wants:
                if possible[made, wanted]:
                    column = self._arc(number, base + made * count + wanted)
                    out[made].append(column)
                    into[wanted].append(column)
        for made, columns in out.items():
            self._balance(columns, makers[made], exact=always)
        for wanted, columns in into.items():
            self._balance(columns, wants[wanted], exact=True)

    def _shared(
        self, number: int, index: int, value: Value, makers: dict[int, list[int]], readers: Sequence[_Wants]
    ) -> None:
        """Several readers: transfers that they share, and each reader's own flow over them."""
        seconds = value.layouts.closure.seconds
        holds = value.layouts.closure.holds
        useful = [holds[:, list(wants)].any(axis=1) for wants, _ in readers]
        starts = np.zeros(len(seconds), bool)
        starts[list(makers)] = True
        ends = np.asarray(np.logical_or.reduce(useful))
        hops = np.asarray(useful_hops(seconds, starts, ends, len(readers)).any(axis=2))
        column = np.full(hops.shape, -1, np.int64)
        base = self.offset[number][index]
        for before, after in np.argwhere(hops):
            column[before, after] = self._arc(number, base + before * len(seconds) + after)
        every: dict[int, list[int]] = {}
        for wants, _ in readers:
            for layout, columns in wants.items():
                every.setdefault(layout, []).extend(columns)
        self.shared.append(
            Shared(
                kind=number,
                value=index,
                readers=len(readers),
                makers=makers,
                wants=every,
                holds=holds,
                column=column,
            )
        )
        for reader, mine in zip(readers, useful):
            leads = np.asarray(mine)
            for _ in range(len(hops)):
                leads = np.asarray(leads | hops[:, leads].any(axis=1))
            own = np.where(hops & leads[None], column, -1)
            self._flow(number, base, holds, own, makers, reader)

    def _flow(
        self,
        number: int,
        base: int,
        holds: BoolArray,
        transfers: IntArray,
        makers: dict[int, list[int]],
        reader: _Wants,
    ) -> None:
        wants, always = reader
        out: dict[int, list[int]] = {made: [] for made in makers}
        into: dict[int, list[int]] = {}
        for before, after in np.argwhere(transfers >= 0).tolist():
            transfer = int(transfers[before, after])
            flow = self._arc(number, -1, parent=transfer)
            self._row([flow, transfer], [1.0, -1.0], -np.inf, 0.0)
            out.setdefault(before, []).append(flow)
            into.setdefault(after, []).append(flow)
        layouts = sorted({*out, *into})
        for wanted, columns in wants.items():
            slices = []
            for layout in layouts:
                if holds[layout, wanted]:
                    slices.append(self._arc(number, base + layout * len(holds) + wanted, free=True))
                    out.setdefault(layout, []).append(slices[-1])
            self._balance(slices, columns, exact=True)
        for layout in layouts:
            sources = [*makers.get(layout, []), *into.get(layout, [])]
            self._balance(out.get(layout, []), sources, exact=always)

    def _balance(self, plus: list[int], minus: list[int], *, exact: bool) -> None:
        """Flow out equals flow in; or, where the reader may be left out, does not exceed it."""
        signs = [1.0] * len(plus) + [-1.0] * len(minus)
        self._row([*plus, *minus], signs, 0.0 if exact else -np.inf, 0.0)
