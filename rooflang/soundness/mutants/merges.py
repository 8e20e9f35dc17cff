"""Broken collectives, and laws that take what they must not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rooflang.ir.exact import alike
from rooflang.ir.pieces import Combine, Piece, all_to_all, gather, merge, reduce, scatter
from rooflang.ir.reference.base import Array
from rooflang.rules import rule
from rooflang.rules.record import Verdict
from rooflang.soundness.merges import Merges
from rooflang.soundness.mutants.record import Mutant
from rooflang.soundness.source import Source

Pieces = Sequence[Piece]


def _other(label: str, piece: Piece) -> str:
    return next(d for d in piece.ids if d != label)


def _kept(pieces: Pieces, *_: Any) -> list[Piece]:
    return list(pieces)


# -- all-reduce -------------------------------------------------------------------------------------------------------


def _largest(pieces: Pieces, *_: Any) -> list[Piece]:
    total = pieces[0]
    for piece in pieces[1:]:
        total = merge(total, piece, lambda a, b: tuple(np.maximum(x, y) for x, y in zip(a, b, strict=True)))
    return [total] * len(pieces)


def _on_root(pieces: Pieces, combine: Combine) -> list[Piece]:
    return [reduce(pieces, combine), *pieces[1:]]


def _neighbours(pieces: Pieces, combine: Combine) -> list[Piece]:
    return [merge(piece, pieces[(i + 1) % len(pieces)], combine) for i, piece in enumerate(pieces)]


def _twice(pieces: Pieces, combine: Combine) -> list[Piece]:
    """A ring that goes around once too often: the first summand is there twice."""
    total = merge(reduce(pieces, combine), pieces[0], combine)
    return [total] * len(pieces)


def _added(pieces: Pieces, combine: Combine) -> list[Piece]:
    """States added as if they were summands."""
    return [reduce(pieces, lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)))] * len(pieces)


# -- reduce-scatter ---------------------------------------------------------------------------------------------------


def _reversed(pieces: Pieces, combine: Combine, label: str, parts: Sequence[Array]) -> list[Piece]:
    sent = [scatter(piece, label, parts[::-1]) for piece in pieces]
    return [reduce([chunks[rank] for chunks in sent], combine) for rank in range(len(pieces))]


def _not_reduced(pieces: Pieces, combine: Combine, label: str, parts: Sequence[Array]) -> list[Piece]:
    return [piece.take(label, ids) for piece, ids in zip(pieces, parts, strict=True)]


def _mislabelled(pieces: Pieces, combine: Combine, label: str, parts: Sequence[Array]) -> list[Piece]:
    """Reversed slices under the indices that belong there."""
    wrong = _reversed(pieces, combine, label, parts)
    if len({len(ids) for ids in parts}) > 1:
        return wrong
    return [replace(piece, ids={**piece.ids, label: ids}) for piece, ids in zip(wrong, parts, strict=True)]


def _of_two(pieces: Pieces, combine: Combine, label: str, parts: Sequence[Array]) -> list[Piece]:
    """Only the summands of the own rank and of the next one."""
    return [
        merge(piece.take(label, ids), pieces[(i + 1) % len(pieces)].take(label, ids), combine)
        for i, (piece, ids) in enumerate(zip(pieces, parts, strict=True))
    ]


# -- all-gather -------------------------------------------------------------------------------------------------------


def _along_other(pieces: Pieces, label: str) -> list[Piece]:
    return [gather(pieces, _other(label, pieces[0]))] * len(pieces)


def _as_it_came(pieces: Pieces, label: str) -> list[Piece]:
    """Shards in the order of their arrival, each under the indices that belong there."""
    joined, out = gather(pieces, label), []
    for rank in range(len(pieces)):
        arrived = [pieces[(rank - step) % len(pieces)].arrays[0] for step in range(len(pieces))]
        arrays = (np.concatenate(arrived, joined.dims[0].index(label)),)
        out.append(replace(joined, arrays=arrays))
    return out


def _one_short(pieces: Pieces, label: str) -> list[Piece]:
    """A ring that stops one step early: a rank sees its own shard where the last one to arrive belongs."""
    joined, out = gather(pieces, label), []
    for rank in range(len(pieces)):
        late = joined.take(label, pieces[(rank + 1) % len(pieces)].ids[label])
        arrays = joined.arrays[0].copy()
        at = [slice(None)] * arrays.ndim
        at[joined.dims[0].index(label)] = np.searchsorted(joined.ids[label], late.ids[label])  # type: ignore[call-overload]
        arrays[tuple(at)] = 0 * late.arrays[0]
        out.append(replace(joined, arrays=(arrays,)))
    return out


# -- all-to-all -------------------------------------------------------------------------------------------------------


def _transposed(pieces: Pieces, concat: str, split: str, parts: Sequence[Array]) -> list[Piece]:
    sent = [scatter(piece, split, parts) for piece in pieces]
    ranks = range(len(pieces))
    return [gather([sent[rank][source] for source in ranks], concat) for rank in ranks]


def _swapped(pieces: Pieces, concat: str, split: str, parts: Sequence[Array]) -> list[Piece]:
    return [gather(pieces, split)] * len(pieces)


def _wrong_order(pieces: Pieces, concat: str, split: str, parts: Sequence[Array]) -> list[Piece]:
    """Received pieces put together from the last rank to the first, under the indices that belong there."""
    out = []
    for ids, right in zip(parts, all_to_all(pieces, concat, split, parts), strict=True):
        got = [piece.take(split, ids).arrays[0] for piece in reversed(pieces)]
        out.append(replace(right, arrays=(np.concatenate(got, right.dims[0].index(concat)),)))
    return out


@dataclass(frozen=True, kw_only=True)
class EqualDims:
    """A claim, and a wrong one: an all-to-all that splits the dim along which it concatenates changes nothing."""

    def __call__(self, source: Source) -> str | None:
        ranks, size = source.ranks(), source.integer(1, 2)
        array = source.numbers([ranks * ranks * size])
        shards = np.split(array, ranks)
        chunks = [np.split(shard, ranks) for shard in shards]
        got = [np.concatenate([chunks[sender][rank] for sender in range(ranks)]) for rank in range(ranks)]
        different = [r for r in range(ranks) if not alike(got[r], shards[r])]
        return f"rank {different[0]} had {shards[different[0]]}, has {got[different[0]]}" if different else None


@dataclass(frozen=True, kw_only=True)
class OtherSizes:
    """A claim, and a wrong one: a value that is scattered again to shards of other sizes stays where it is."""

    def __call__(self, source: Source) -> str | None:
        ranks, rng = source.ranks(), source.generator()
        array = source.numbers([source.extent(6)])
        one, other = (np.sort(rng.integers(0, ranks, len(array))) for _ in range(2))
        source.suits(not np.array_equal(one, other))
        moved = [r for r in range(ranks) if not alike(array[one == r], array[other == r])]
        return f"rank {moved[0]} has {array[one == moved[0]]}, not {array[other == moved[0]]}" if moved else None


#: Rule → name → the collective that is replaced, and by what.
_COLLECTIVES: dict[str, dict[str, tuple[str, Callable[..., Any]]]] = {
    "merge_gather_scatter": {
        "all-to-all: dims swapped": ("all_to_all", _swapped),
        "all-to-all: sender and receiver swapped": ("all_to_all", _transposed),
        "all-to-all: left out": ("all_to_all", _kept),
        "all-to-all: pieces in reverse": ("all_to_all", _wrong_order),
    },
    "merge_gather_broadcast": {
        "all-gather: left out": ("all_gather", _kept),
        "all-gather: along the other dim": ("all_gather", _along_other),
        "all-gather: in the order of arrival": ("all_gather", _as_it_came),
        "all-gather: one step short": ("all_gather", _one_short),
        "all-gather: shards combined instead": ("all_gather", lambda pieces, label: _largest(pieces)),
    },
    "merge_reduce_scatter": {
        "reduce-scatter: slices in reverse": ("reduce_scatter", _reversed),
        "reduce-scatter: even slices in reverse": ("reduce_scatter", _mislabelled),
        "reduce-scatter: a slice of the own summand": ("reduce_scatter", _not_reduced),
        "reduce-scatter: of two summands": ("reduce_scatter", _of_two),
    },
    "merge_reduce_broadcast": {
        "all-reduce: left out": ("all_reduce", _kept),
        "all-reduce: by the largest": ("all_reduce", _largest),
        "all-reduce: on the root only": ("all_reduce", _on_root),
        "all-reduce: neighbours only": ("all_reduce", _neighbours),
        "all-reduce: one summand twice": ("all_reduce", _twice),
        "all-reduce: states added": ("all_reduce", _added),
    },
    "dedup_kernel": {
        "broadcast: the owner keeps it": ("broadcast", lambda piece, count: [piece] + [_zero(piece)] * (count - 1)),
    },
}


def _zero(piece: Piece) -> Piece:
    return replace(piece, arrays=tuple(0 * a for a in piece.arrays))


def _everywhere(*args: Any, spread: Any = None, **others: Any) -> Verdict:
    """Partial states combined shard by shard along any dim."""
    return rule("merge_reduce_scatter").check(*args, **others)


def mutants() -> Iterator[Mutant]:
    """All of them."""
    for name_of_rule, entries in _COLLECTIVES.items():
        for name, (collective, broken) in entries.items():
            claim = Merges.of(name_of_rule, broken={collective: broken})
            yield Mutant(name=name, rule=name_of_rule, claim=claim)
    merge_scatter, reduce_scatter = "merge_gather_scatter", "merge_reduce_scatter"
    yield Mutant(name="all-to-all: from a dim to itself", rule=merge_scatter, claim=EqualDims())
    yield Mutant(name="other sizes: nothing to do", rule=merge_scatter, claim=OtherSizes())
    claim = Merges.of(reduce_scatter, check=_everywhere)
    yield Mutant(name="reduce-scatter: candidates shard by shard", rule=reduce_scatter, claim=claim)
