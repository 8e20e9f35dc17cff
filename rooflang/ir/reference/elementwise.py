"""Sums, activations and bit-exact moves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rooflang.ir.exact import exp, logits
from rooflang.ir.kinds.elementwise import CAP, FUNCTIONS, MOVES
from rooflang.ir.op import Op
from rooflang.ir.reference.base import Array, Arrays, Where, define, plain, spread


def sigmoid(x: Array) -> Array:
    """1 / (1 + e⁻ˣ), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def silu(x: Array) -> Array:
    """x · sigmoid(x)."""
    return np.asarray(x * sigmoid(x))


def softplus(x: Array) -> Array:
    """log(1 + eˣ), without overflow."""
    return np.asarray(np.maximum(x, 0.0) + np.log1p(exp(logits(-np.abs(x)))))


def _gelu(x: Array) -> Array:
    """The approximation by tanh (Hendrycks and Gimpel, arXiv 1606.08415, section 2)."""
    return np.asarray(0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3))))


_COMPUTE: dict[str, Callable[[Array], Array]] = {
    "silu": silu,
    "gelu": _gelu,
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "relu2": lambda x: np.maximum(x, 0.0) ** 2,
}


def activated(function: str, x: Array, cap: float = CAP) -> Array:
    """The activation `function` of each element."""
    return np.asarray(cap * np.tanh(x / cap) if function == "soft_cap" else _COMPUTE[function](x))


def _same(op: Op, array: Array) -> Array:
    return spread(array, op.operands[0].dims, op.output.dims)


def _add(op: Op, where: Where, operands: Arrays) -> Array:
    left, right = (spread(a, t.dims, op.output.dims) for a, t in zip(operands, op.operands, strict=True))
    return np.asarray(left + right)


def _activation(op: Op, where: Where, operands: Arrays) -> Array:
    return activated(op.attr("function", FUNCTIONS[0]), _same(op, operands[0]), op.attr("cap", CAP))


define("add", plain(_add))
define("activation", plain(_activation))
for _kind in MOVES:
    define(_kind, plain(lambda op, where, operands: _same(op, operands[0])))
