"""The two ends of a language model: embedding rows, the last token of a prompt, and the choice of the next token."""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.ir.cut import PARTIAL, Cut, CutKind
from rooflang.ir.kinds.rows import contracted, expect, par, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _embed_cuts(op: Op) -> tuple[Cut, ...]:
    # A vocabulary cut masks ids outside its own range to zero rows (clamping them would be wrong).
    return (*pars(op, op.output.dims), contracted(op, op.operands[1].dims[0]))


def _embed_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """The whole table (paper), or the rows of the tokens, at most all of them (physical)."""
    if index == 0 or assumptions.embedding_read == "table":
        return 1.0
    vocab = op.operands[1].dims[0]
    rows = op.operands[0].elements(local) / full[vocab]
    return rows * (rows < 1) + 1.0 * (rows >= 1)


def _last_cuts(op: Op) -> tuple[Cut, ...]:
    (seq,) = (d for d in op.operands[0].dims if d not in op.output.dims)
    return (*pars(op, op.output.dims), contracted(op, seq))


def _last_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return op.output.elements(local) / op.operands[0].elements(local)


def _sample_cuts(op: Op) -> tuple[Cut, ...]:
    vocab = op.operands[0].dims[-1]
    fold = Cut(
        kind=CutKind.FOLD,
        dim=vocab,
        operands=(vocab,),
        out=PARTIAL,
        loops=(vocab,),
        combine="argmax",
        partial_scale=2.0,  # the value beside the id
    )
    return (*(par(op, d) for d in op.output.dims), fold)


def _sample_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {"bf16": op.operands[0].elements(local)}


register(
    OpKind(
        name="embed",
        summary="rows of a table by token id; operands: ids, table (vocab, hidden)",
        cuts=_embed_cuts,
        read_fraction=_embed_read,
        check=lambda op: expect(op, 2),
    )
)
register(
    OpKind(
        name="last_token",
        summary="the last position of a sequence; ranks that do not hold it contribute zeros",
        cuts=_last_cuts,
        read_fraction=_last_read,
        check=lambda op: expect(op, 1),
    )
)
register(
    OpKind(
        name="argmax",
        summary="id of the largest logit, the smaller id on a tie",
        cuts=_sample_cuts,
        flops=_sample_flops,
        check=lambda op: expect(op, 1),
    )
)
