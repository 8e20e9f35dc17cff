"""Collectives over one mesh axis, written rank by rank: what each rank sends, receives and keeps.

They move `Piece`s, arrays that know which global indices they hold, and know nothing of operators or rewrite rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflang.errors import PlacementError
from rooflang.ir.reference.base import Array, State

#: How two partial values become one.
Combine = Callable[[State, State], State]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """What one rank holds of a value: its arrays (several for a partial state) and their dims, and global indices by
    label."""

    arrays: State
    dims: tuple[tuple[str, ...], ...]
    ids: Mapping[str, Array]

    def take(self, label: str, ids: Array) -> Piece:
        """The part with these indices of a label. Arrays without the label stay whole."""
        have = self.ids.get(label)
        if have is None:
            raise PlacementError(f"a value without the dim {label!r} cannot be cut along it")
        if np.array_equal(have, ids):
            return self
        at = np.searchsorted(have, ids)
        if not np.array_equal(have[np.minimum(at, len(have) - 1)] if len(have) else [], ids):
            raise PlacementError(f"a rank has {_show(have)} of {label!r}, not {_show(ids)}")
        arrays = tuple(
            np.take(a, at, dims.index(label)) if label in dims else a for a, dims in zip(self.arrays, self.dims)
        )
        return Piece(arrays=arrays, dims=self.dims, ids={**self.ids, label: ids})


def join(pieces: Sequence[Piece], label: str) -> Piece:
    """One piece of several that hold different indices of a label and are alike otherwise."""
    first = pieces[0]
    if any(label not in piece.ids for piece in pieces):
        raise PlacementError(f"a value without the dim {label!r} cannot be gathered along it")
    for piece in pieces[1:]:
        _check_alike(first, piece, label)
    ids = np.concatenate([piece.ids[label] for piece in pieces])
    order = np.argsort(ids, kind="stable")
    if len(np.unique(ids)) < len(ids):
        raise PlacementError(f"two ranks hold the same indices of {label!r}")
    arrays = tuple(
        np.take(np.concatenate([piece.arrays[i] for piece in pieces], dims.index(label)), order, dims.index(label))
        if label in dims
        else first.arrays[i]
        for i, dims in enumerate(first.dims)
    )
    return Piece(arrays=arrays, dims=first.dims, ids={**first.ids, label: ids[order]})


def merge(a: Piece, b: Piece, combine: Combine) -> Piece:
    """Two partial values of the same share in one."""
    _check_alike(a, b, "")
    return Piece(arrays=combine(a.arrays, b.arrays), dims=a.dims, ids=a.ids)


def _check_alike(a: Piece, b: Piece, but: str) -> None:
    for label, ids in a.ids.items():
        if label != but and not np.array_equal(ids, b.ids[label]):
            raise PlacementError(f"ranks hold different indices of {label!r}: {_show(ids)} and {_show(b.ids[label])}")


def _show(ids: Array) -> str:
    return f"[{' '.join(map(str, ids[:8]))}{' …' if len(ids) > 8 else ''}]"


def scatter(piece: Piece, label: str, parts: Sequence[Array]) -> list[Piece]:
    """Rank r gets the indices `parts[r]`."""
    return [piece.take(label, ids) for ids in parts]


def broadcast(piece: Piece, count: int) -> list[Piece]:
    """Every rank gets all."""
    return [piece] * count


def gather(pieces: Sequence[Piece], label: str) -> Piece:
    """One rank gets all shards of a label."""
    return join(pieces, label)


def reduce(pieces: Sequence[Piece], combine: Combine) -> Piece:
    """One rank gets all partial values in one, combined in the order of ranks."""
    total = pieces[0]
    for piece in pieces[1:]:
        total = merge(total, piece, combine)
    return total


def all_gather(pieces: Sequence[Piece], label: str) -> list[Piece]:
    """A ring: in step s each rank hands on what it got in step s − 1."""
    count = len(pieces)
    boxes = [{rank: piece} for rank, piece in enumerate(pieces)]
    for step in range(count - 1):
        for rank in range(count):
            source = (rank - step - 1) % count
            boxes[rank][source] = boxes[(rank - 1) % count][source]
    return [join([box[source] for source in range(count)], label) for box in boxes]


def all_reduce(pieces: Sequence[Piece], combine: Combine) -> list[Piece]:
    """A tree over neighbours that keeps the order of ranks; every rank gets the root."""
    level = list(pieces)
    while len(level) > 1:
        paired = [merge(a, b, combine) for a, b in zip(level[::2], level[1::2])]
        level = paired + level[len(level) - len(level) % 2 :]
    return [level[0]] * len(pieces)


def reduce_scatter(pieces: Sequence[Piece], combine: Combine, label: str, parts: Sequence[Array]) -> list[Piece]:
    """Rank r receives the indices `parts[r]` of every rank's partial value and combines them."""
    sent = [scatter(piece, label, parts) for piece in pieces]
    return [reduce([chunks[rank] for chunks in sent], combine) for rank in range(len(pieces))]


def all_to_all(pieces: Sequence[Piece], concat: str, split: str, parts: Sequence[Array]) -> list[Piece]:
    """Rank r receives the indices `parts[r]` of `split` from every rank, and joins them along `concat`."""
    sent = [scatter(piece, split, parts) for piece in pieces]
    return [join([chunks[rank] for chunks in sent], concat) for rank in range(len(pieces))]
