"""Hyper-connections: C copies of the stream mixed by coefficients, C to read, C to write, C × C to mix.

Coefficients are bounded before use, as in DeepSeek V4: reading and writing weights by a sigmoid, the weights of all old
copies in a new one by a softmax (one step of the Sinkhorn iterations that V4 makes).
"""

from __future__ import annotations

import math

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.kinds.hyper import copies_label, mixed_labels
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, product, spread
from rooflang.ir.reference.elementwise import sigmoid


def _coefficients(op: Op, array: Array, wanted: Array) -> tuple[Array, tuple[str, ...]]:
    """(the coefficients of these numbers along a last axis, the labels before it); too few are used again."""
    dims, mixed = op.operands[1].dims, mixed_labels(op)
    tokens = tuple(d for d in dims if d not in mixed)
    ordered = spread(array, dims, (*tokens, *mixed))
    flat = ordered.reshape(*ordered.shape[: len(tokens)], math.prod(ordered.shape[len(tokens) :]))
    return flat[..., wanted % flat.shape[-1]], tokens


def _expand(op: Op, where: Where, operands: Arrays) -> Array:
    stream = spread(operands[0], op.operands[0].dims, op.output.dims)
    return np.repeat(stream, len(where.ids[copies_label(op)]), op.output.dims.index(copies_label(op)))


def _read(op: Op, where: Where, operands: Arrays) -> Array:
    copies = copies_label(op)
    weights, tokens = _coefficients(op, operands[1], np.arange(where.sizes[copies]))
    return product(operands[0], op.operands[0].dims, sigmoid(weights), (*tokens, copies), op.output.dims)


def _write(op: Op, where: Where, operands: Arrays) -> Array:
    copies, stream = copies_label(op), op.operands[0]
    count = where.sizes[copies]
    write, tokens = _coefficients(op, operands[1], count + np.arange(count))
    mix, _ = _coefficients(op, operands[1], 2 * count + np.arange(count * count))
    mix = logits(mix)
    mix = exp(mix - mix.max(-1, keepdims=True)).reshape(*mix.shape[:-1], count, count)
    mix /= mix.sum(-1, keepdims=True)
    old = tuple("" if d == copies else d for d in stream.dims)
    mixed = product(mix, (*tokens, copies, ""), operands[0], old, op.output.dims)
    added = product(sigmoid(write), (*tokens, copies), operands[2], op.operands[2].dims, op.output.dims)
    return np.asarray(mixed + added)


define("hyper_expand", plain(_expand))
define("hyper_read", plain(_read))
define("hyper_write", plain(_write))
