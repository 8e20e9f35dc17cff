"""Pairs turned by an angle that depends on the position and on the pair's place in the whole dim."""

from __future__ import annotations

import numpy as np

from rooflang.ir.kinds.rope import rotated
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread


def _run(op: Op, where: Where, operands: Arrays) -> Array:
    x, positions = op.operands
    width = x.dims[-1]
    ids, full = where.ids[width], rotated(op, where.sizes[width])
    half = max(full // 2, 1)
    interleaved = bool(op.attr("interleaved"))
    pair = ids // 2 if interleaved else ids % half
    first = ids % 2 == 0 if interleaved else ids < half
    partner = np.where(first, ids + 1, ids - 1) if interleaved else (ids + half) % (2 * half)
    turns = np.where(ids < full, op.attr("base", 10000.0) ** (-pair / half), 0.0)
    angle = operands[1][..., None] * turns
    cos, sin = (spread(f(angle), (*positions.dims, width), x.dims) for f in (np.cos, np.sin))
    # A rank that lacks a partner takes some other element for it: no sound cut lets it come to that.
    # What is not rotated turns by 0, and takes nothing of its partner.
    other = operands[0][..., np.searchsorted(ids, partner) % max(len(ids), 1)]
    return spread(operands[0] * cos + np.where(first, -1, 1) * other * sin, x.dims, op.output.dims)


define("rope", plain(_run))
