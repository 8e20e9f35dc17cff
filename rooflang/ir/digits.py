"""`Digits`: which coordinate of a mesh axis owns each index of a dim that the axis cuts.

Cuts over several axes are nested: `shard_sizes` numbers the shards of a dim over all axes that cut it anywhere, and
each axis owns one digit of that number. A value that only the inner axis cuts then lies in strides, so that gathering
the outer axis moves nothing inside a rank, and cuts over two axes commute.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rooflang.errors import PlacementError
from rooflang.ir.cut import STATES, Spec
from rooflang.ir.reference.base import Array
from rooflang.ir.shards import shard_sizes

#: A rank: one coordinate per mesh axis.
Rank = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Digits:
    """The digits of all dims. `owner[(label, axis)]` is the coordinate on that axis of every index of the dim.

    Any owners will do, uneven and empty shards included; `Digits.nested` makes those of a plan.
    """

    axis_sizes: tuple[int, ...]
    sizes: Mapping[str, int]
    owner: Mapping[tuple[str, int], Array]
    _known: dict[tuple[str, tuple[tuple[int, int], ...]], Array] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def nested(
        cls,
        axis_sizes: Sequence[int],
        sizes: Mapping[str, int],
        cuts: Mapping[str, Collection[int]],
        pooled: Iterable[tuple[str, str]] = (),
        aligned: Mapping[str, int] | None = None,
    ) -> Digits:
        """Nested digits for the axes `cuts[label]` that cut each label.

        `pooled` are pairs (positions, entries) of which ⌈S/C⌉ positions make an entry: their digits agree. Shards of
        the labels in `aligned` have multiples of so many indices. Raises `PlacementError` where shards of positions
        would not be whole entries, or an extent is no such multiple.
        """
        axes = tuple(axis_sizes)
        owner: dict[tuple[str, int], Array] = {}
        for group in _linked(cuts, tuple(pooled)):
            together = sorted({axis for label in group for axis in cuts.get(label, ())})
            base = min(group, key=lambda label: (sizes[label], label))
            parts = [axes[axis] for axis in together]
            cut = shard_sizes(sizes[base], parts, multiple_of=(aligned or {}).get(base, 1), where=base)
            shards = np.repeat(np.arange(math.prod(parts)), cut)
            found = {base: np.array(np.unravel_index(shards, parts)) if parts else np.zeros((0, sizes[base]), int)}
            _follow(found, sizes, [pair for pair in pooled if pair[0] in group])
            owner.update({(label, a): rows[i] for label, rows in found.items() for i, a in enumerate(together)})
        return cls(axis_sizes=axes, sizes=sizes, owner=owner)

    @property
    def ranks(self) -> Iterable[Rank]:
        """All ranks, the last axis running fastest."""
        return np.ndindex(*self.axis_sizes)

    def lines(self, axis: int) -> Iterable[list[Rank]]:
        """The groups of ranks that differ along one axis only, each in the order of that axis."""
        others = [1 if a == axis else n for a, n in enumerate(self.axis_sizes)]
        for start in np.ndindex(*others):
            yield [(*start[:axis], at, *start[axis + 1 :]) for at in range(self.axis_sizes[axis])]

    def ids(self, label: str, rank: Rank, axes: Iterable[int]) -> Array:
        """Global indices of a dim on a rank, where these axes cut it."""
        at = tuple((axis, rank[axis]) for axis in sorted(axes))
        key = (label, at)
        if key not in self._known:
            held = np.ones(self.sizes[label], dtype=bool)
            for axis, coordinate in at:
                held &= self._owner(label, axis) == coordinate
            self._known[key] = np.flatnonzero(held)
        return self._known[key]

    def parts(self, label: str, axis: int, ids: Array) -> list[Array]:
        """The indices `ids` of a dim, split by their owners along one axis."""
        owners = self._owner(label, axis)[ids]
        return [ids[owners == coordinate] for coordinate in range(self.axis_sizes[axis])]

    def _owner(self, label: str, axis: int) -> Array:
        if (label, axis) not in self.owner:
            raise PlacementError(f"axis {axis} does not cut {label!r}")
        return self.owner[(label, axis)]


def cut_axes(spec: Spec, label: str) -> tuple[int, ...]:
    """The axes along which a spec cuts a label."""
    return tuple(axis for axis, entry in enumerate(spec) if entry == label and entry not in STATES)


def _linked(cuts: Mapping[str, Collection[int]], pairs: Sequence[tuple[str, str]]) -> list[set[str]]:
    """Labels in groups that share their digits."""
    groups: list[set[str]] = []
    for new in [*({label} for label in cuts), *(set(pair) for pair in pairs)]:
        for old in [group for group in groups if group & new]:
            groups.remove(old)
            new |= old
        groups.append(new)
    return groups


def _follow(found: dict[str, Array], sizes: Mapping[str, int], pairs: list[tuple[str, str]]) -> None:
    """Complete the digits of a group from those of its shortest label."""
    while any(a not in found or b not in found for a, b in pairs):
        for positions, entries in pairs:
            ratio = -(-sizes[positions] // sizes[entries])
            if entries in found and positions not in found:
                found[positions] = found[entries][:, np.arange(sizes[positions]) // ratio]
            elif positions in found and entries not in found:
                first = np.minimum(np.arange(sizes[entries]) * ratio, sizes[positions] - 1)
                found[entries] = found[positions][:, first]
    for positions, entries in pairs:
        ratio = -(-sizes[positions] // sizes[entries])
        if not np.array_equal(found[positions], found[entries][:, np.arange(sizes[positions]) // ratio]):
            raise PlacementError(f"shards of {positions!r} are not whole entries of {entries!r}")
