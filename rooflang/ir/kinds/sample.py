"""Sampling the next token: argmax of logits plus Gumbel noise (Gumbel 1954; Maddison et al., arXiv 1411.0030).

`sample` keys the noise by (request, vocabulary id): the number is a function of the two, whoever computes it, so that
requests and vocabulary may be cut. Its operand 1 holds a key per request (a hash of seed and position).
`stateful_sample` draws from a generator with a state. Each draw changes the next one: it may not be repeated, left out,
or cut, and has no rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import expect, expect_labels, par
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check(op: Op) -> None:
    expect(op, 2 if op.kind == "sample" else 1)
    logits = op.operands[0]
    if len(logits.dims) < 2:
        raise GraphError(
            f"{op.name}: {logits.name} has the dims {' '.join(logits.dims)}", expected="requests vocabulary"
        )
    expect_labels(op, op.output.dims, logits.dims[:-1], "the output")
    for keys in op.operands[1:]:
        expect_labels(op, keys.dims, logits.dims[:-1], keys.name)


def _cuts(op: Op) -> tuple[Cut, ...]:
    vocab = op.operands[0].dims[-1]
    fold = Cut(
        kind=CutKind.FOLD,
        dim=vocab,
        operands=(vocab, REPLICATED),
        out=PARTIAL,
        loops=(vocab,),
        combine="argmax",
        partial_scale=2.0,  # the value beside the id
    )
    return (*(par(op, d) for d in op.output.dims), fold)


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """A number, two logarithms, a sum and a comparison per logit."""
    return {"fp32": 5.0 * op.operands[0].elements(local)}


register(
    OpKind(
        name="sample",
        summary="id of the largest logit plus Gumbel noise keyed by request and id; operands: logits, keys",
        cuts=_cuts,
        flops=_flops,
        check=_check,
    )
)
register(
    OpKind(
        name="stateful_sample",
        summary="id of the largest logit plus Gumbel noise from a generator that keeps a state",
        cuts=lambda op: (),
        refuses=lambda op: dict.fromkeys(
            op.labels, "each draw moves the generator on, so that shares draw other numbers"
        ),
        flops=_flops,
        check=_check,
        pure=False,
    )
)
