"""A causal convolution per channel. The summary of a share is its last inputs before each gap in its positions, by
position, from which every rank takes those that stand before its own."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.conv import tap_label
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Reference, State, Summary, Where, define, plain, product, spread
from rooflang.ir.reference.elementwise import silu
from rooflang.ir.reference.embedding import rows_at


def _suffixes(op: Op, where: Where, operands: Arrays) -> State:
    """(positions, inputs there): those of which a later position, held by somebody else, may need the input."""
    ids, reach = where.ids[op.operands[0].dims[1]], where.sizes[tap_label(op)] - 1
    after = ids[:, None] + np.arange(1, reach + 1)
    needed = ~np.isin(after, ids) & (after < where.sizes[op.operands[0].dims[1]])
    handed = needed.any(-1)
    return ids[handed], np.moveaxis(operands[0], 1, 0)[handed]


def _merge(op: Op, a: State, b: State) -> State:
    ids = np.concatenate([a[0], b[0]])
    order = np.argsort(ids, kind="stable")
    return ids[order], np.concatenate([a[1], b[1]])[order]


def _run(op: Op, where: Where, summary: State, operands: Arrays) -> State:
    (x, weight), ids = op.operands[:2], where.ids[op.operands[0].dims[1]]
    taps = where.sizes[tap_label(op)]
    wanted = ids[:, None] - np.arange(taps - 1, -1, -1)
    own = rows_at(operands[0], 1, wanted, ids)
    foreign = rows_at(summary[1], 0, np.where(np.isin(wanted, ids), -1, wanted), summary[0])
    window = (x.dims[1], weight.dims[-1], x.dims[0], *x.dims[2:])
    return (_activated(op, product(own + foreign, window, operands[1], weight.dims, op.output.dims), operands),)


def _activated(op: Op, mixed: Array, operands: Arrays) -> Array:
    """The sum over taps, with the bias if there is one, after its silu."""
    if len(operands) > 2:
        mixed = mixed + spread(operands[2], op.operands[2].dims, op.output.dims)
    return silu(mixed)


def _push(op: Op, where: Where, operands: Arrays) -> Array:
    x, history = op.operands
    new = spread(operands[0], x.dims, (history.dims[0], "", *history.dims[2:]))
    return np.concatenate([operands[1][:, 1:], new], 1)


def _step(op: Op, where: Where, operands: Arrays) -> Array:
    history, weight = op.operands[:2]
    return _activated(op, product(operands[0], history.dims, operands[1], weight.dims, op.output.dims), operands)


define("short_conv", Reference(run=_run, summary=Summary(of=_suffixes, merge=_merge)))
define("conv_push", plain(_push))
define("conv_step", plain(_step))
