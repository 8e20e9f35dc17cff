"""Keys and values made from latent entries, so that a prompt's attention runs per head (DeepSeek-V2, arXiv 2405.04434,
section 2.1, before the projections are absorbed).

`expand_latent` takes entries (batch positions width) and a projection (head part rank) to (batch positions head part):
each head's product with the first `rank` elements of an entry, values say. Where the output has another last label it
is that product followed by the other elements of the entry, the rotary ones that all heads share: keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import Cut
from rooflang.ir.kinds.rows import expect, expect_labels, expect_rank, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def keeps_rotary(op: Op) -> bool:
    """Do the elements beyond the rank come after the product?"""
    return op.output.dims[-1] != op.operands[1].dims[1]


def _check(op: Op) -> None:
    expect(op, 2)
    expect_rank(op, 0, "batch", "positions", "width")
    expect_rank(op, 1, "head", "part", "rank")
    entries, (head, part, rank) = op.operands[0], op.operands[1].dims
    if {head, part, rank} & set(entries.dims) or op.output.dims[-1] in {head, rank, *entries.dims}:
        raise GraphError(f"{op.name}: entries and projection share a dim", expected="dims of their own")
    expect_labels(op, op.output.dims[:-1], (*entries.dims[:2], head), "the output, but for its width,")


def _check_sizes(op: Op, sizes: Mapping[str, int]) -> None:
    (_, part, rank), width = op.operands[1].dims, op.operands[0].dims[2]
    rotary = sizes[width] - sizes[rank]
    if rotary < 0:
        raise GraphError(f"{op.name}: {rank} has {sizes[rank]} elements", expected=f"at most {sizes[width]} of {width}")
    made = sizes[part] + rotary * keeps_rotary(op)
    if sizes[op.output.dims[-1]] != made:
        raise GraphError(
            f"{op.name}: {op.output.dims[-1]} has {sizes[op.output.dims[-1]]} elements", expected=f"{made}"
        )


def _cuts(op: Op) -> tuple[Cut, ...]:
    width = op.output.dims[-1]
    return tuple(pars(op, [d for d in op.output.dims if d != width or not keeps_rotary(op)]))


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    _, part, rank = op.operands[1].dims
    return {op.peak: 2.0 * math.prod(local[d] for d in op.output.dims[:-1]) * local[part] * full[rank]}


def _read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """Values are made from the first elements of an entry only."""
    whole = index == 1 or keeps_rotary(op)
    return 1.0 if whole else full[op.operands[1].dims[2]] / full[op.operands[0].dims[2]]


register(
    OpKind(
        name="expand_latent",
        summary="keys or values of every head from latent entries; operands: entries, projection",
        cuts=_cuts,
        flops=_flops,
        read_fraction=_read,
        refuses=lambda op: (
            {op.output.dims[-1]: "a key is two parts: a product and rotary elements"} if keeps_rotary(op) else {}
        ),
        check=_check,
        check_sizes=_check_sizes,
    )
)
