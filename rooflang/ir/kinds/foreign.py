"""Operators of programs that come from elsewhere, of which only shape and cost are known.

- `pointwise`: some function, called `function`, of elements that stand at the same place: products, differences,
  powers, comparisons. An operand without a label of the output is the same along it. Every label may be cut.
- `rowwise`: some function of rows: what comes out depends on what its operands hold at the same place of the labels
  that both have. Labels that only operands or only the output have are the row: a concatenation or a cumulative sum
  along one of them, a maximum over it. Labels of rows may be cut.
- `opaque`: some function of all of its operands. Nothing is known that would allow a cut, so that every rank runs all
  of it. `flops` is how many operations it takes for each element of its output, and so for `rowwise`.

What they compute is not known either: their references are functions of the same kind, so that a plan that moves
the wrong data to them is found.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.kinds.rows import pars
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check_operands(op: Op) -> None:
    if not op.operands:
        raise GraphError(f"{op.name}: {op.kind} takes no operands", expected="one or more")


def _check_pointwise(op: Op) -> None:
    _check_operands(op)
    for tensor in op.operands:
        if not set(tensor.dims) <= set(op.output.dims):
            raise GraphError(
                f"{op.name}: {tensor.name} has the dims {' '.join(tensor.dims)}",
                expected=f"some of {' '.join(op.output.dims)}",
            )


def _check_stated(op: Op) -> None:
    _check_operands(op)
    if op.attr("flops", 0.0) < 0:
        raise GraphError(f"{op.name}: flops={op.attr('flops')}", expected="0 or more for each element of the output")


def _shared(op: Op) -> list[str]:
    """Labels of rows: those of the output that an operand has."""
    held = {d for tensor in op.operands for d in tensor.dims}
    return [d for d in op.output.dims if d in held]


def _stated_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: op.attr("flops", 0.0) * op.output.elements(local)}


register(
    OpKind(
        name="pointwise",
        summary="some function of elements that stand at the same place",
        cuts=lambda op: tuple(pars(op, op.output.dims)),
        flops=lambda op, local, full: {op.peak: op.output.elements(local)},
        attrs={"function": (str,)},
        refuses=lambda op: {"partial": "the function of a sum is not the sum of functions"},
        check=_check_pointwise,
    )
)
register(
    OpKind(
        name="rowwise",
        summary="some function of each row, the labels that operands and output share",
        cuts=lambda op: tuple(pars(op, _shared(op))),
        flops=_stated_flops,
        attrs={"function": (str,), "flops": NUMBER},
        refuses=lambda op: dict.fromkeys((d for d in op.labels if d not in _shared(op)), "it is a part of the row"),
        check=_check_stated,
    )
)
register(
    OpKind(
        name="opaque",
        summary="some function of all of its operands, which nothing may cut",
        cuts=lambda op: (),
        flops=_stated_flops,
        attrs={"function": (str,), "flops": NUMBER},
        refuses=lambda op: dict.fromkeys(op.labels, "what it computes is not known"),
        check=_check_stated,
    )
)
