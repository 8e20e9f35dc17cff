"""Values over a mesh: laid out, moved by transfers, and put together again, on NumPy arrays.

Transfers are taken at their word. If what they say does not fit, ranks come to hold shares that are not those of the
spec, which is a `PlacementError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rooflang.errors import PlacementError
from rooflang.ir.cut import OWNER, PARTIAL, STATES, Spec, show_spec
from rooflang.ir.digits import Digits, Rank, cut_axes
from rooflang.ir.exact import alike
from rooflang.ir.layout import Transfer, step_of
from rooflang.ir.op import Op
from rooflang.ir.pieces import (
    Combine,
    Piece,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
)
from rooflang.ir.reference.base import Array, Fold, reference
from rooflang.ir.tensor import Tensor

_Held = TypeVar("_Held")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Value:
    """A tensor over the mesh: one piece per rank; only the first coordinate of an `OWNER` axis has one.

    `fold` is the operator whose partial states the pieces are; None where they are the array itself, or summands of it.
    """

    tensor: Tensor
    spec: Spec
    pieces: Mapping[Rank, Piece]
    fold: Op | None = None


def place(tensor: Tensor, array: Array, spec: Spec, digits: Digits) -> Value:
    """A whole array laid over the mesh. Raises `PlacementError` for a partial spec: only an operator makes those."""
    if PARTIAL in spec:
        raise PlacementError(f"{tensor.name} is partial before any operator made it so", where=show_spec(spec))
    pieces = {}
    for rank in digits.ranks:
        if all(rank[axis] == 0 for axis, entry in enumerate(spec) if entry == OWNER):
            piece = Piece(arrays=(array,), dims=(tensor.dims,), ids={d: digits.ids(d, rank, ()) for d in tensor.dims})
            for label in tensor.dims:
                piece = piece.take(label, digits.ids(label, rank, cut_axes(spec, label)))
            pieces[rank] = piece
    return Value(tensor=tensor, spec=spec, pieces=pieces)


def assemble(value: Value, digits: Digits) -> Array:
    """The whole array that a value stands for. Raises `PlacementError` where copies of it differ."""
    pieces = value.pieces
    for axis, entry in enumerate(value.spec):
        pieces = {line[0]: _together(value, entry, held) for line, held in lines_of(pieces, axis, digits)}
    (piece,) = pieces.values()
    return (finished(piece, value.fold, digits) if value.fold else piece).arrays[0]


def _together(value: Value, entry: str, held: Sequence[Piece]) -> Piece:
    """What the ranks of one line stand for together."""
    if entry == PARTIAL:
        return reduce(held, combine_of(value.fold))
    if entry not in STATES:
        return gather(held, entry)
    for copy in held[1:]:
        for a, b in zip(held[0].arrays, copy.arrays, strict=True):
            if not alike(a, b):
                raise PlacementError(f"copies of {value.tensor.name} differ", where=show_spec(value.spec))
    return held[0]


def lines_of(held: Mapping[Rank, _Held], axis: int, digits: Digits) -> Iterator[tuple[list[Rank], list[_Held]]]:
    """The ranks along each line of an axis that hold anything, and what they hold."""
    for line in digits.lines(axis):
        ranks = [rank for rank in line if rank in held]
        if ranks:
            yield line, [held[rank] for rank in ranks]


def fold_of(op: Op) -> Fold:
    """How partial states of an operator that has them become its output."""
    fold = reference(op.kind).fold
    assert fold is not None
    return fold


def combine_of(op: Op | None) -> Combine:
    """How partial values become one: by the fold of the operator that made them, or as summands."""
    if op is None:
        return lambda a, b: (a[0] + b[0],)
    return lambda a, b: fold_of(op).combine(op, a, b)


def finished(piece: Piece, op: Op, digits: Digits) -> Piece:
    """The output that a complete state becomes."""
    dims = op.output.dims
    ids = {label: piece.ids[label] if label in piece.ids else digits.ids(label, (), ()) for label in dims}
    return Piece(arrays=(fold_of(op).finish(op, piece.arrays),), dims=(dims,), ids=ids)


def checked(value: Value, digits: Digits) -> Value:
    """The value itself, if every rank holds what its spec says. Raises `PlacementError`."""
    for rank, piece in value.pieces.items():
        for label, ids in piece.ids.items():
            wanted = digits.ids(label, rank, cut_axes(value.spec, label))
            if not np.array_equal(ids, wanted):
                raise PlacementError(
                    f"rank {rank} holds {len(ids)} of {label!r} of {value.tensor.name}, not its own {len(wanted)}",
                    where=show_spec(value.spec),
                )
    return value


# -- transfers --------------------------------------------------------------------------------------------------------


def apply_transfer(value: Value, transfer: Transfer, digits: Digits) -> Value:
    """The value after a transfer; a joint collective runs over its axes one after the other.

    Raises `PlacementError` where the value does not lie as the transfer says, or where the collective is another than
    the change of spec asks for.
    """
    if value.spec != transfer.before:
        raise PlacementError(
            f"{transfer.collective} of {value.tensor.name} from {show_spec(transfer.before)}",
            where=show_spec(value.spec),
        )
    for axis in transfer.axes:
        before, after = value.spec[axis], transfer.after[axis]
        if step_of(before, after) != transfer.collective:
            raise PlacementError(f"{transfer.collective} from {before} to {after}", where=value.tensor.name)
        value = moved(value, axis, after, transfer.collective, digits)
    return checked(value, digits)


def moved(value: Value, axis: int, after: str, collective: str, digits: Digits) -> Value:
    """The value after a collective along one axis, on which it lies as `after` then. Partial states become what they
    are the states of as soon as no axis has them apart. Raises `PlacementError` where pieces do not fit."""
    spec = (*value.spec[:axis], after, *value.spec[axis + 1 :])
    op = value.fold if PARTIAL in value.spec and PARTIAL not in spec else None
    pieces: dict[Rank, Piece] = {}
    for line, held in lines_of(value.pieces, axis, digits):
        if op is not None and collective == "reduce_scatter" and after not in held[0].ids:
            # A state without the label (a list of candidates) must be complete before it can be cut.
            whole = [finished(piece, op, digits) for piece in all_reduce(held, combine_of(op))]
            got = _collective("slice", whole, "", after, axis, combine_of(None), digits)
        else:
            got = _collective(collective, held, value.spec[axis], after, axis, combine_of(value.fold), digits)
            got = [finished(piece, op, digits) for piece in got] if op is not None else got
        pieces.update(zip(line, got))
    return Value(tensor=value.tensor, spec=spec, pieces=pieces, fold=None if op is not None else value.fold)


def _collective(
    name: str, held: list[Piece], before: str, after: str, axis: int, combine: Combine, digits: Digits
) -> list[Piece]:
    """What the ranks of one line hold after a collective."""
    if name == "all_gather":
        return all_gather(held, before)
    if name == "all_reduce":
        return all_reduce(held, combine)
    if name == "broadcast":
        return broadcast(held[0], digits.axis_sizes[axis])
    if name == "gather":
        return [gather(held, before)]
    if name == "reduce":
        return [reduce(held, combine)]
    if after == OWNER:
        return held[:1]
    if after not in held[0].ids:
        raise PlacementError(f"a value without the dim {after!r} cannot be cut along it")
    parts = digits.parts(after, axis, held[0].ids[after])
    if name == "reduce_scatter":
        return reduce_scatter(held, combine, after, parts)
    if name == "all_to_all":
        return all_to_all(held, before, after, parts)
    if name == "scatter":
        return [held[0].take(after, ids) for ids in parts]
    return [piece.take(after, ids) for piece, ids in zip(held, parts, strict=True)]
