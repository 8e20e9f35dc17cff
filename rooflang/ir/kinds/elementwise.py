"""Sums, activations and bit-exact moves. Each label of the output may be cut."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.rows import expect, expect_labels, linear, pars
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

#: What an `activation` may compute, by its attribute `function`; the first is the default. `relu2` is relu(x)²
#: (arXiv 2109.08668), `soft_cap` is c · tanh(x / c) with c = `cap` (Gemma 2, arXiv 2408.00118).
FUNCTIONS = ("silu", "gelu", "relu", "sigmoid", "tanh", "relu2", "soft_cap")

#: Default of `cap`: that of Gemma 2's logits.
CAP = 30.0


def _check_add(op: Op) -> None:
    expect(op, 2)
    for tensor in op.operands:
        expect_labels(op, tensor.dims, op.output.dims, tensor.name)


def _check_unary(op: Op) -> None:
    expect(op, 1)
    expect_labels(op, op.operands[0].dims, op.output.dims, op.operands[0].name)


def _check_activation(op: Op) -> None:
    _check_unary(op)
    if op.attr("function", FUNCTIONS[0]) not in FUNCTIONS:
        raise UnknownNameError("activation function", op.attr("function"), FUNCTIONS, where=op.name)
    if op.attr("cap", CAP) <= 0:
        raise GraphError(f"{op.name}: cap={op.attr('cap')}", expected="a number above 0")


def _one_flop(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: op.output.elements(local)}


def _move_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """A copy inside one memory that is declared `one_pass` costs one pass over its bytes, not a read and a write."""
    return 0.0 if op.attr("one_pass") else 1.0


def _add_cuts(op: Op) -> tuple[Cut, ...]:
    return (*pars(op, op.output.dims), linear(op, (0, 1)))


def _unary_cuts(op: Op) -> tuple[Cut, ...]:
    return tuple(pars(op, op.output.dims))


def _move_cuts(op: Op) -> tuple[Cut, ...]:
    return (*pars(op, op.output.dims), linear(op, (0,)))


register(OpKind(name="add", summary="x + y", cuts=_add_cuts, flops=_one_flop, check=_check_add, linear=True))
register(
    OpKind(
        name="activation",
        summary="a pointwise nonlinearity",
        cuts=_unary_cuts,
        flops=_one_flop,
        attrs={"function": (str,), "cap": NUMBER},
        check=_check_activation,
    )
)
for _tier in ("hbm", "dram", "nvme"):
    register(
        OpKind(
            name=f"to_{_tier}",
            summary=f"the identity, its output stored in {_tier.upper()}",
            cuts=_move_cuts,
            read_fraction=_move_read,
            attrs={"one_pass": (bool,), "across": (str,)},
            check=_check_unary,
            linear=True,
        )
    )

#: Kinds that are the identity on values.
MOVES = ("to_hbm", "to_dram", "to_nvme")
