"""Linear attention with a fixed decay per head (Lightning Attention-2, arXiv 2401.04658; MiniMax-01, arXiv 2501.08313).

Each head keeps a state S (key value). A position with key k and value v makes S ← λ·S + k·vᵀ with λ = e^(−slope), and
its query reads Sᵀ·q. The slopes (head) are weights. A decode step has one position: `linear_update` takes k, v, the
slopes and the state to the next state, `linear_read` takes q and that state to the output; with `fused` it finds the
state on chip. A prompt begins with a state of zeros: `linear_scan` takes q, k, v, all over (batch positions head …),
and the slopes to the outputs, `linear_final` takes k, v and the slopes to the state after the last position; with
`fused` the scan has made it already, and only its write is left.

Heads, keys and values are independent of each other but for the query's sum over the keys. Positions may be cut: the
state that a shard begins with is the sum of those of the shards before, each with the decay of all positions since.
`map_bytes` is the size of one head's state.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import REPLICATED, Cut, CutKind
from rooflang.ir.kinds.delta import scan_cut
from rooflang.ir.kinds.rows import contracted, expect, expect_rank, pars
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

#: Positions that the authors' kernels take at once (arXiv 2401.04658, section 4).
CHUNK = 256


def _expect_dims(op: Op, index: int, wanted: tuple[str, ...]) -> None:
    found = op.operands[index] if index >= 0 else op.output
    if found.dims != wanted:
        raise GraphError(f"{op.name}: {found.name} has the dims {' '.join(found.dims)}", expected=" ".join(wanted))


def _check_step(op: Op) -> None:
    expect(op, 4 if op.kind == "linear_update" else 2)
    expect_rank(op, 0, "batch", "head", "key")
    batch, head, key = op.operands[0].dims
    value = op.operands[1].dims[-1] if op.operands[1].dims else ""
    state = (batch, head, key, value)
    if value in (batch, head, key):
        raise GraphError(f"{op.name}: keys and values share the dim {value!r}", expected="a dim of their own each")
    if op.kind == "linear_read":
        _expect_dims(op, 1, state)
        _expect_dims(op, -1, (batch, head, value))
        return
    for index, dims in ((1, (batch, head, value)), (2, (head,)), (3, state), (-1, state)):
        _expect_dims(op, index, dims)


def _check_sequence(op: Op) -> None:
    scans = op.kind == "linear_scan"
    expect(op, 4 if scans else 3)
    expect_rank(op, 0, "batch", "positions", "head", "key")
    batch, positions, head, key = op.operands[0].dims
    *keys, values, _ = op.operands
    value = values.dims[-1] if values.dims else ""
    if value in op.operands[0].dims:
        raise GraphError(f"{op.name}: keys and values share the dim {value!r}", expected="a dim of their own each")
    for index in range(len(keys)):
        _expect_dims(op, index, (batch, positions, head, key))
    rows = (batch, positions, head, value)
    _expect_dims(op, len(keys), rows)
    _expect_dims(op, len(keys) + 1, (head,))
    _expect_dims(op, -1, rows if scans else (batch, head, key, value))


def _extents(op: Op, local: Sizes) -> tuple[Num, Num, Num]:
    """Heads of all positions that run, keys and values of each."""
    *rows, key = op.operands[0].dims
    value = op.output.dims[-1]
    total: Num = 1
    for label in rows:
        total = total * local[label]
    return total, local[key], local[value]


def _step_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Decay K·V, the product of key and value and its sum 2·K·V; reading 2·K·V."""
    heads, key, value = _extents(op, local)
    return {op.peak: heads * key * value * (3.0 if op.kind == "linear_update" else 2.0)}


def _scan_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """By chunks of C positions, per position: 2·C·(K + V) within the chunk, 4·K·V with the state, and 2·K·V more where
    outputs are corrected for the state that a shard begins with."""
    heads, key, value = _extents(op, local)
    each = 2 * CHUNK * (key + value) + (6 if _shared(op, local, full) else 4) * key * value
    return {op.peak: heads * each}


def _shared(op: Op, local: Sizes, full: Sizes) -> bool:
    positions = op.operands[0].dims[1]
    return bool(local[positions] < full[positions])


def _final_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    heads, key, value = _extents(op, local)
    return {} if op.attr("fused") else {op.peak: 2.0 * heads * key * value}


def _scan_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """The queries once more where outputs are corrected."""
    return 2.0 if index == 0 and _shared(op, local, full) else 1.0


def _scan_write(op: Op, local: Sizes, full: Sizes) -> Num:
    return 3.0 if _shared(op, local, full) else 1.0


def _fused_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    on_chip = op.attr("fused") and (op.kind == "linear_final" or index == 1)
    return 0.0 if on_chip else 1.0


def _update_cuts(op: Op) -> tuple[Cut, ...]:
    whole = (REPLICATED,) * len(op.operands)
    replica = Cut(kind=CutKind.PAR, dim="replica", operands=whole, out=REPLICATED)
    return (*pars(op, op.output.dims), replica)


def _read_cuts(op: Op) -> tuple[Cut, ...]:
    return (*pars(op, op.output.dims), contracted(op, op.operands[0].dims[-1]))


def _sequence_cuts(op: Op) -> tuple[Cut, ...]:
    positions = op.operands[0].dims[1]
    return (*pars(op, [d for d in op.output.dims if d != positions]), scan_cut(op))


register(
    OpKind(
        name="linear_update",
        summary="a head's state after one position, with a fixed decay; operands: k, v, slopes, state",
        cuts=_update_cuts,
        flops=_step_flops,
        check=_check_step,
        pure=False,
        in_place=3,
    )
)
register(
    OpKind(
        name="linear_read",
        summary="what a query reads from a head's state, as it is; operands: q, state",
        cuts=_read_cuts,
        flops=_step_flops,
        read_fraction=_fused_read,
        attrs={"fused": (bool,)},
        check=_check_step,
    )
)
register(
    OpKind(
        name="linear_scan",
        summary="outputs of linear attention with a fixed decay over a sequence; operands: q, k, v, slopes",
        cuts=_sequence_cuts,
        flops=_scan_flops,
        read_fraction=_scan_read,
        write_fraction=_scan_write,
        attrs={"map_bytes": NUMBER},
        check=_check_sequence,
    )
)
register(
    OpKind(
        name="linear_final",
        summary="a head's state after a sequence, with a fixed decay; operands: k, v, slopes",
        cuts=_sequence_cuts,
        flops=_final_flops,
        read_fraction=_fused_read,
        attrs={"map_bytes": NUMBER, "fused": (bool,)},
        check=_check_sequence,
    )
)
