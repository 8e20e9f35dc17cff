"""Whose memory a value occupies: what a value shares with another one is alive, and counted, once."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.ir.tensor import Role, Tensor
from rooflang.place.lower import LiftedOp, PlacedGraph, Value


def storage(placed: PlacedGraph, *, receive_buffers: bool) -> dict[Value, Value | None]:
    """The value in whose memory each value lies: itself, what it is a slice of or was written into, or None where it
    takes no room beside the residents (a cache that was appended to, what stays on chip or is streamed). Of what
    is read as one slice only, that slice is kept. A weight that was gathered is there beside its shares.

    Without receive buffers, what a collective or a one-pass copy delivers lies where its source does, and what a send
    delivers nowhere: the paper's profile (see `Assumptions.receive_buffers`).
    """
    found: dict[Value, Value | None] = {value: value for value in placed.inputs}
    sliced = _sliced(placed)
    for op in placed.ops:
        if op.tensor.role is Role.ON_CHIP or _has(op, "streamed") or op.write in sliced:
            found[op.write] = None
        elif op.aliases is not None:
            found[op.write] = op.write if op.aliases in sliced else found.get(op.aliases)
        elif receive_buffers or not op.reads or (op.kind == "kernel" and not _has(op, "one_pass")):
            found[op.write] = op.write
        else:
            found[op.write] = None if op.kind == "send" else found.get(op.reads[0])
    return found


def _sliced(placed: PlacedGraph) -> set[Value]:
    """What nobody reads but one slice of it, taken in the block where it was made."""
    readers: dict[Value, list[LiftedOp]] = {}
    for op in placed.ops:
        for value in op.reads:
            readers.setdefault(value, []).append(op)
    makers = (op for op in placed.ops if op.kind != "send" and op.write not in placed.outputs)
    return {op.write for op in makers if [_slices(reader, op) for reader in readers.get(op.write, ())] == [True]}


def _slices(reader: LiftedOp, maker: LiftedOp) -> bool:
    return reader.transfer is not None and reader.transfer.free and reader.block == maker.block


def _has(op: LiftedOp, attr: str) -> bool:
    return op.mode is not None and bool(op.mode.op.attr(attr))


def stored(placed: PlacedGraph, lies: Mapping[Value, Value | None]) -> dict[Value, Tensor]:
    """The values that occupy memory of their own by `storage`, and what they are: inputs, then by their makers."""
    tensors = {**placed.inputs, **{op.write: op.tensor for op in placed.ops}}
    return {value: tensor for value, tensor in tensors.items() if lies[value] == value}
