"""Kimi Delta Attention: a gated delta rule with a decay per channel (Kimi Linear, arXiv 2510.26692, section 3).

Each head keeps a state S (key value). A position with key k, value v, decay logits f (key) and a logit b makes
S ← (I − β·k·kᵀ)·diag(α)·S + β·k·vᵀ with α = exp(`floor` · sigmoid(eʳ·(f + s))) and β = sigmoid(b), where the weights r
(head) and s (head key) are the rate and shift of the decay, and its query reads Sᵀ·q. Keys and queries are scaled to
length 1, queries by 1/√key too. A decay may also be one number a head, f and s without the key dim, and with
`gate="softplus"` α is exp(−eʳ·softplus(f + s)): both as in Gated DeltaNet (arXiv 2412.06464).

A decode step has one position: `delta_update` takes k, v, f, b, r, s and the state to the next state, `delta_read`
takes q and that state to the output. They are one kernel, which reads the state once and writes it once: with `fused`,
`delta_read` finds it on chip. A prompt begins with a state of zeros: `delta_scan` takes q, k, v, f, b, all over (batch
positions head …), r and s to the outputs, and `delta_final` takes k, v, f, b, r, s to the state after the last
position; with `fused` the scan has made it already, and only its write is left.

Heads and values are independent of each other; keys are not, since the rule mixes them. Positions may be cut: a shard
is an affine map S ← A·S + B, the maps of the shards before give its first state, and A (key key) is work that a whole
sequence does without. Outputs are made as if the first state was zero, and corrected when it is known: q, f and the
outputs are read again. The last state takes the maps of all shards, which ranks have exchanged for the scan already
where it is `fused`. `map_bytes` is the size of one head's map.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir.cut import REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import expect, expect_labels, expect_rank, par
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

#: Positions that the chunked form of the rule takes at once (the authors' kernels, flash-linear-attention).
CHUNK = 64

#: How a decay follows from its logits, by the attribute `gate`; the first is the default.
GATES = ("sigmoid", "softplus")


def key_value(op: Op) -> tuple[str, str]:
    """Labels of keys and values."""
    if op.kind == "delta_read":
        return op.operands[1].dims[-2], op.operands[1].dims[-1]
    first = 1 if op.kind == "delta_scan" else 0
    return op.operands[first].dims[-1], op.operands[first + 1].dims[-1]


def _check_rows(op: Op, first: int, *words: str) -> None:
    """k, v, f and b from operand `first` on, alike but for their last dim, and the weights r and s."""
    k, v, decay, beta, rate, shift = op.operands[first : first + 6]
    expect_rank(op, first, *words)
    head, key = k.dims[-2:]
    each = (key,) if key in decay.dims else ()
    wanted = ((decay, (*k.dims[:-1], *each)), (v, (*k.dims[:-1], v.dims[-1])), (beta, k.dims[:-1]))
    for tensor, dims in (*wanted, (rate, (head,)), (shift, (head, *each))):
        if tensor.dims != dims:
            raise GraphError(f"{op.name}: {tensor.name} has the dims {' '.join(tensor.dims)}", expected=" ".join(dims))
    if op.attr("gate", GATES[0]) not in GATES:
        raise UnknownNameError("decay gate", op.attr("gate"), GATES, where=op.name)
    if v.dims[-1] in k.dims:
        raise GraphError(f"{op.name}: keys and values share the dim {v.dims[-1]!r}", expected="a dim of their own each")


def _check_update(op: Op) -> None:
    expect(op, 7)
    _check_rows(op, 0, "batch", "head", "key")
    k, v, state = op.operands[0], op.operands[1], op.operands[6]
    if state.dims != (*k.dims, v.dims[-1]) or op.output.dims != state.dims:
        raise GraphError(
            f"{op.name}: {state.name} has the dims {' '.join(state.dims)}", expected="batch head key value"
        )


def _check_read(op: Op) -> None:
    expect(op, 2)
    q, state = op.operands
    expect_rank(op, 0, "batch", "head", "key")
    if state.dims[:-1] != q.dims or op.output.dims != (*q.dims[:-1], state.dims[-1]):
        raise GraphError(
            f"{op.name}: {state.name} has the dims {' '.join(state.dims)}", expected="batch head key value"
        )


def _check_scan(op: Op) -> None:
    expect(op, 7)
    _check_rows(op, 1, "batch", "positions", "head", "key")
    q, k, v = op.operands[:3]
    expect_labels(op, q.dims, k.dims, q.name)
    if op.output.dims != v.dims or q.dims != k.dims:
        raise GraphError(f"{op.name}: the output has the dims {' '.join(op.output.dims)}", expected=" ".join(v.dims))


def _check_final(op: Op) -> None:
    expect(op, 6)
    _check_rows(op, 0, "batch", "positions", "head", "key")
    k, v = op.operands[:2]
    wanted = (k.dims[0], *k.dims[2:], v.dims[-1])
    if op.output.dims != wanted:
        raise GraphError(f"{op.name}: the state has the dims {' '.join(op.output.dims)}", expected=" ".join(wanted))


def _heads(op: Op, local: Sizes) -> Num:
    """Heads of all positions that run."""
    total: Num = 1
    for label in op.operands[0].dims[:-1]:
        total = total * local[label]
    return total


def _gate_flops(op: Op, key: Num) -> Num:
    """Scaling a key to length 1, and the gates α, one a channel or one a head, and β."""
    channels = key if len(op.operands[-1 if op.kind != "delta_update" else -2].dims) > 1 else 1
    return (3 * key + 1) + (5 * channels + 3)


def _update_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Decay K·V, the state's answer to the key 2·K·V, the error 2·V, its outer product with the key 2·K·V."""
    key, value = (local[d] for d in key_value(op))
    return {op.peak: _heads(op, local) * (5 * key * value + 2 * value + _gate_flops(op, key))}


def _read_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    key, value = (local[d] for d in key_value(op))
    return {op.peak: _heads(op, local) * (2 * key * value + 3 * key + 1)}


def _scan_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """By chunks of C positions, per position: 6·K·V with the state, 3·C·K and C² within the chunk. A share of a
    sequence makes its map first, 4·K·(K + V) a position."""
    key, value = (local[d] for d in key_value(op))
    each = 6 * key * value + 3 * CHUNK * key + CHUNK**2 + _gate_flops(op, key) + (3 * key + 1)
    if _shared(op, local, full):
        each = each + 4 * key * (key + value)
    return {op.peak: _heads(op, local) * each}


def _shared(op: Op, local: Sizes, full: Sizes) -> bool:
    """Does this rank have a share of the positions only?"""
    positions = op.operands[0].dims[1]
    return bool(local[positions] < full[positions])


def _scan_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """The queries and the decay logits once more where outputs are corrected."""
    return 2.0 if index in (0, 3) and _shared(op, local, full) else 1.0


def _scan_write(op: Op, local: Sizes, full: Sizes) -> Num:
    """Outputs are written, and where they are corrected read and written once more."""
    return 3.0 if _shared(op, local, full) else 1.0


def _fused_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    on_chip = op.attr("fused") and (op.kind == "delta_final" or index == 1)
    return 0.0 if on_chip else 1.0


def _final_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {} if op.attr("fused") else _update_flops(op, local, full)


def _refuses(op: Op) -> Mapping[str, str]:
    return {key_value(op)[0]: "the rule mixes all keys of a head: what one of them leaves depends on the others"}


def _row_cuts(op: Op) -> tuple[Cut, ...]:
    """By request, head and value; a state that is written in place also on replicas that each own a whole one."""
    key, _ = key_value(op)
    positions = op.operands[0].dims[1] if op.kind in ("delta_scan", "delta_final") else ""
    rows = [par(op, d) for d in op.output.dims if d not in (key, positions)]
    if op.kind == "delta_update":
        whole = (REPLICATED,) * len(op.operands)
        rows.append(Cut(kind=CutKind.PAR, dim="replica", operands=whole, out=REPLICATED))
    return tuple(rows)


def scan_cut(op: Op) -> Cut:
    """By positions, the second dim of operands and of an output that has one for each of them: shards exchange affine
    maps of `map_bytes` per request and head."""
    batch, positions, head = op.operands[0].dims[:3]
    return Cut(
        kind=CutKind.SCAN,
        dim=positions,
        operands=tuple(positions if positions in t.dims else REPLICATED for t in op.operands),
        out=positions if positions in op.output.dims else REPLICATED,
        loops=(positions,),
        combine="affine",
        stat_rows=(batch, head),
        stat_bytes=float(op.attr("map_bytes", 0.0)),
    )


def _sequence_cuts(op: Op) -> tuple[Cut, ...]:
    return (*_row_cuts(op), scan_cut(op))


register(
    OpKind(
        name="delta_update",
        summary="a head's state after one position; operands: k, v, decay, beta, rate, shift, state",
        cuts=_row_cuts,
        refuses=_refuses,
        flops=_update_flops,
        attrs={"floor": NUMBER, "gate": (str,)},
        check=_check_update,
        pure=False,
        in_place=6,
    )
)
register(
    OpKind(
        name="delta_read",
        summary="what a query reads from a head's state; operands: q, state",
        cuts=_row_cuts,
        refuses=_refuses,
        flops=_read_flops,
        read_fraction=_fused_read,
        attrs={"fused": (bool,)},
        check=_check_read,
    )
)
register(
    OpKind(
        name="delta_scan",
        summary="outputs of the delta rule over a sequence; operands: q, k, v, decay, beta, rate, shift",
        cuts=_sequence_cuts,
        refuses=_refuses,
        flops=_scan_flops,
        read_fraction=_scan_read,
        write_fraction=_scan_write,
        attrs={"floor": NUMBER, "gate": (str,), "map_bytes": NUMBER},
        check=_check_scan,
    )
)
register(
    OpKind(
        name="delta_final",
        summary="a head's state after a sequence; operands: k, v, decay, beta, rate, shift",
        cuts=_sequence_cuts,
        refuses=_refuses,
        flops=_final_flops,
        read_fraction=_fused_read,
        attrs={"floor": NUMBER, "gate": (str,), "map_bytes": NUMBER, "fused": (bool,)},
        check=_check_final,
    )
)
