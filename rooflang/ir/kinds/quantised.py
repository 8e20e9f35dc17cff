"""A product whose activations are quantised on the fly, by blocks of the summed label (DeepSeek-V3, arXiv 2412.19437,
section 3.3.2): each row's block of `block` elements gets a scale of its own, its largest absolute value over 448 (the
largest FP8 E4M3), and elements are rounded to multiples of it. Weights come quantised, by `block` × `block`.

A shard must hold whole blocks: half a block has another largest value, and other roundings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rooflang.errors import GraphError
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.einsum import summed
from rooflang.ir.kinds.rows import contracted, expect, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

BLOCK = 128


def _check(op: Op) -> None:
    expect(op, 2)
    x, weight = op.operands
    if len(summed(op)) != 1 or not x.dims or x.dims[-1] != summed(op)[0]:
        raise GraphError(f"{op.name}: {op.kind} sums over the last dim of {x.name}, and over no other")
    free = {*x.dims, *weight.dims} - set(summed(op))
    if set(op.output.dims) != free or op.attr("block", BLOCK) < 1:
        raise GraphError(f"{op.name}: the product has the dims {' '.join(op.output.dims)}", expected=" ".join(free))


def _check_blocks(op: Op, sizes: Mapping[str, int]) -> None:
    (label,), block = summed(op), op.attr("block", BLOCK)
    if sizes[label] % block:
        raise GraphError(f"{op.name}: {label} has {sizes[label]} elements", expected=f"whole blocks of {block}")


def _cuts(op: Op) -> tuple[Cut, ...]:
    block = op.attr("block", BLOCK)
    weight = op.operands[1]
    rows = [replace(c, multiple_of=block) if c.dim == weight.dims[-1] else c for c in pars(op, op.output.dims)]
    return (*rows, *(replace(contracted(op, d), multiple_of=block) for d in summed(op)))


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: 2.0 * op.operands[0].fill * math.prod(local[d] for d in op.labels)}


register(
    OpKind(
        name="block_matmul",
        summary="matrix product with activations quantised by blocks of the summed label",
        cuts=_cuts,
        flops=_flops,
        attrs={"block": (int,)},
        check=_check,
        check_sizes=_check_blocks,
    )
)
