"""Rotary position embedding (RoFormer, arXiv 2104.09864): pairs of elements turned by an angle per position.

`rope` takes x (… dim) and positions, ids over labels of x. Pair i of d/2 turns by position · `base`^(−2i/d). A pair is
(i, i + d/2), or with `interleaved` (2i, 2i + 1). A contiguous cut of the dim tears pairs of the first sort apart; those
of the second stay together where shards have an even number of elements. With `fraction` only that share of the dim is
rotated, its first elements (GPT-NeoX, arXiv 2204.06745), d counting these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import expect, expect_labels, pars
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check(op: Op) -> None:
    expect(op, 2)
    x, positions = op.operands
    expect_labels(op, x.dims, op.output.dims, x.name)
    if not x.dims or not set(positions.dims) <= set(x.dims[:-1]):
        raise GraphError(
            f"{op.name}: {positions.name} has the dims {' '.join(positions.dims)}", expected=f"dims of {x.name}"
        )
    if not 0 < op.attr("fraction", 1.0) <= 1:
        raise GraphError(f"{op.name}: fraction={op.attr('fraction')}", expected="above 0, up to 1")


def rotated(op: Op, width: Num) -> Num:
    """How many elements of so many are rotated: pairs."""
    return 2 * math.floor(width * op.attr("fraction", 1.0) / 2)


def _check_even(op: Op, sizes: Mapping[str, int]) -> None:
    width = op.operands[0].dims[-1]
    if sizes[width] % 2:
        raise GraphError(f"{op.name}: {width} has {sizes[width]} elements", expected="pairs")


def _cuts(op: Op) -> tuple[Cut, ...]:
    width = op.operands[0].dims[-1]
    rows = pars(op, [d for d in op.output.dims if d != width])
    if op.attr("interleaved"):
        rows.append(
            Cut(
                kind=CutKind.PAR,
                dim=width,
                operands=(width, REPLICATED),
                out=width,
                loops=(width,),
                multiple_of=2,
            )
        )
    return tuple(rows)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Two products and a sum per element that is rotated."""
    return {op.peak: 3.0 * op.attr("fraction", 1.0) * op.output.elements(local)}


register(
    OpKind(
        name="rope",
        summary="pairs of elements turned by their position; operands: x, positions",
        cuts=_cuts,
        flops=_flops,
        attrs={"interleaved": (bool,), "base": NUMBER, "fraction": NUMBER},
        refuses=lambda op: {op.operands[0].dims[-1]: "a contiguous cut tears the pairs (i, i + d/2) apart"},
        check=_check,
        check_sizes=_check_even,
    )
)
