"""What stands between up- and down-projection of a gated FFN (Shazeer, arXiv 2002.05202): f(gate) · up.

`swiglu_oai` is the form of gpt-oss (arXiv 2508.10925): both are clamped at `LIMIT`, f(g) = g · sigmoid(1.702·g), and
1 is added to up.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import UnknownNameError
from rooflang.ir.kinds.elementwise import FUNCTIONS
from rooflang.ir.kinds.rows import expect, expect_labels, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

#: What may be done to the gate, by the attribute `function`; the first is the default.
GATES = (*FUNCTIONS, "swiglu_oai")


def check_function(op: Op) -> None:
    """Raise `UnknownNameError` unless the operator's `function` is one of `GATES`."""
    if op.attr("function", GATES[0]) not in GATES:
        raise UnknownNameError("gate function", op.attr("function"), GATES, where=op.name)


def _check(op: Op) -> None:
    expect(op, 2)
    for tensor in op.operands:
        expect_labels(op, tensor.dims, op.output.dims, tensor.name)
    check_function(op)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Four FLOPs a sigmoid or tanh, one for each product."""
    return {op.peak: 6.0 * op.output.elements(local)}


register(
    OpKind(
        name="gated_activation",
        summary="f(gate) times up; operands: gate, up",
        cuts=lambda op: tuple(pars(op, op.output.dims)),
        flops=_flops,
        attrs={"function": (str,)},
        refuses=lambda op: {"partial": "the nonlinearity comes after the sum"},
        check=_check,
    )
)
