"""Who reads the values of a block, and which values every plan has to make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rooflang.errors import PlacementError
from rooflang.extractors.costed import CostedKind
from rooflang.extractors.layouts import BoolArray
from rooflang.extractors.needed import needed
from rooflang.extractors.shape import Shape
from rooflang.ir.layout import Mode

#: Shapes of blocks that are remembered.
_KEPT = 256

#: Which modes may be used, by kind of block.
Keep = Callable[[str, Mode], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One reader of a value: the kernels that make value `by`, or an exit of the block to port group `group`.

    Kernels that make the same value (a fused one and the one that it stands for) are alternatives, of which at most
    one runs, so that their reads are one reader. `wants[mode]` is the layout in which that mode reads; modes that do
    not read the value are absent. `always` says that every plan has this reader.
    """

    by: int = -1
    group: int = -1
    wants: Mapping[int, int]
    always: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The readers of one value. `rivals` are pairs of them, by number, of which at most one is there."""

    readers: tuple[Reader, ...]
    rivals: tuple[tuple[int, int], ...]

    @property
    def alternatives(self) -> bool:
        """True when at most one reader is there: no transfer is ever shared."""
        count = len(self.readers)
        return count < 2 or (count == 2 and len(self.rivals) == 1)


def readers_of(kind: CostedKind) -> tuple[Readers, ...]:
    """The readers of every value of a block."""
    return _readers_of(kind.shape)


@lru_cache(maxsize=_KEPT)
def _readers_of(kind: Shape) -> tuple[Readers, ...]:
    needed = _needed_values(kind)
    found: dict[tuple[int, int, int], dict[int, int]] = {}
    for number, mode in enumerate(kind.modes):
        times: dict[int, int] = {}
        for read in mode.reads:
            turn = times[read.value] = times.get(read.value, -1) + 1
            found.setdefault((read.value, mode.value, turn), {})[number] = read.layout
    read_by: dict[int, set[int]] = {}
    for value, by, _ in found:
        read_by.setdefault(value, set()).add(by)
    lists: list[list[Reader]] = [[] for _ in kind.values]
    for (value, by, _), wants in found.items():
        always = by in needed and len(wants) == len(kind.makers[by])
        lists[value].append(Reader(by=by, wants=wants, always=always))
    for index, item in enumerate(kind.values):
        lists[index] += [Reader(group=group, wants={}, always=True) for _, group in item.exits]
    return tuple(
        Readers(readers=tuple(mine), rivals=tuple(_rivals(kind, index, mine, read_by, needed)))
        for index, mine in enumerate(lists)
    )


def _rivals(
    kind: Shape, value: int, readers: list[Reader], read_by: Mapping[int, set[int]], needed: frozenset[int]
) -> Iterable[tuple[int, int]]:
    """Pairs of readers of which a plan that makes nothing in vain has at most one.

    What the first one makes is read by the second one's kernels only, and by none of those that read `value` directly
    (which have the first one's work fused into them).
    """
    taken: set[int] = set()
    for one, reader in enumerate(readers):
        if reader.by < 0 or reader.by in needed or kind.values[reader.by].exits:
            continue
        for other, rival in enumerate(readers):
            if read_by.get(reader.by) != {rival.by} or not taken.isdisjoint((one, other)):
                continue
            if not any(read.value == reader.by for number in rival.wants for read in kind.modes[number].reads):
                taken.update((one, other))
                yield (one, other)


def needed_values(kind: CostedKind) -> frozenset[int]:
    """Values that every plan of the block has to make: without them some exit cannot be reached."""
    return _needed_values(kind.shape)


@lru_cache(maxsize=_KEPT)
def _needed_values(kind: Shape) -> frozenset[int]:
    kernels = {(mode.value, frozenset(read.value for read in mode.reads)) for mode in kind.modes}
    exits = {index for index, value in enumerate(kind.values) if value.exits}
    given = {index for index, value in enumerate(kind.values) if value.port >= 0}
    return needed(set(range(len(kind.values))) - given, given, exits, kernels)


def usable_modes(kind: CostedKind, at: int, keep: Keep | None) -> BoolArray:
    """Mask of the modes that `keep` lets through and that can run at batch size number `at`.

    Raises `PlacementError` where nothing is left that makes a value which every plan needs.
    """
    good = np.isfinite(kind.local_s[:, at])
    if keep is not None:
        good &= np.array([keep(kind.kind.name, mode.mode) for mode in kind.modes], bool)
    for value in needed_values(kind):
        if not good[list(kind.makers[value])].any():
            raise PlacementError(
                f"no layout is left in which {kind.values[value].tensor.name} can be made",
                where=kind.kind.name,
                hint="its extents do not divide over the mesh axes, or the modes that do were excluded",
            )
    return good
