"""Sampling the next token: argmax of logits plus Gumbel noise (Gumbel 1954; Maddison et al., arXiv 1411.0030).

`sample` keys the noise by (request, vocabulary id): the number is a function of the two, whoever computes it, so that
requests and vocabulary may be cut. Its operand 1 holds a key per request (a hash of seed and position). Logits are
divided by `temperature`. With `top_k` only so many of the largest take part, with `top_p` of these only the largest
whose probabilities come to that sum (nucleus sampling, arXiv 1904.09751). Shards of the vocabulary hand over their k
best candidates; a nucleus of the whole vocabulary is known to nobody who has a share of it.

`top_k` gives the ids of the largest logits themselves, as many as its output's last dim has, best first.
`stateful_sample` draws from a generator with a state. Each draw changes the next one: it may not be repeated, left out,
or cut, and has no rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import expect, expect_labels, par
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def restricted(op: Op) -> bool:
    """Do only some of the ids take part?"""
    return bool(op.attr("top_k")) or op.attr("top_p", 1.0) < 1


def candidates(op: Op, vocabulary: int) -> int:
    """How many of so many ids may be chosen once their noise is known: the best, or all that take part."""
    return int(op.attr("top_k") or vocabulary) if restricted(op) else 1


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
    good = op.attr("top_k", 0) >= 0 and 0 < op.attr("top_p", 1.0) <= 1 and op.attr("temperature", 1.0) > 0
    if not good:
        given = {name: value for name, value in op.attrs if name in ("top_k", "top_p", "temperature")}
        raise GraphError(f"{op.name}: {given}", expected="top_k 0 or more, top_p up to 1, temperature above 0")


def _check_top(op: Op) -> None:
    expect(op, 1)
    logits = op.operands[0]
    if len(op.output.dims) < 1 or op.output.dims[-1] in logits.dims or not logits.dims:
        raise GraphError(f"{op.name}: the last dim of the output counts the ids", expected="a dim of its own")
    expect_labels(op, op.output.dims[:-1], logits.dims[:-1], "the output, but for its ids,")


def _fold(op: Op, combine: str, each: float) -> Cut:
    vocab = op.operands[0].dims[-1]
    return Cut(
        kind=CutKind.FOLD,
        dim=vocab,
        operands=(vocab, *(REPLICATED for _ in op.operands[1:])),
        out=PARTIAL,
        loops=(vocab,),
        combine=combine,
        partial_scale=2.0 * each,  # the value beside each id
    )


def _cuts(op: Op) -> tuple[Cut, ...]:
    rows = tuple(par(op, d) for d in op.output.dims)
    if _nucleus(op):
        return rows
    return (*rows, _fold(op, "topk" if op.attr("top_k") else "argmax", max(1, op.attr("top_k", 0))))


def _nucleus(op: Op) -> bool:
    """Is it a nucleus of the whole vocabulary?"""
    return not op.attr("top_k") and op.attr("top_p", 1.0) < 1


def _refuses(op: Op) -> Mapping[str, str]:
    why = "which ids are in the nucleus depends on the probabilities of all: gather the logits, or take the top_k first"
    return {op.operands[0].dims[-1]: why} if _nucleus(op) else {}


def _flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """A number, two logarithms, a sum and a comparison per logit."""
    return {"fp32": 5.0 * op.operands[0].elements(local)}


register(
    OpKind(
        name="sample",
        summary="id of the largest logit plus Gumbel noise keyed by request and id; operands: logits, keys",
        cuts=_cuts,
        flops=_flops,
        attrs={"top_k": (int,), "top_p": NUMBER, "temperature": NUMBER},
        refuses=_refuses,
        check=_check,
    )
)
register(
    OpKind(
        name="top_k",
        summary="ids of the largest logits, best first, the smaller id first on a tie",
        cuts=lambda op: (*(par(op, d) for d in op.output.dims[:-1]), _fold(op, "topk", 1.0)),
        flops=lambda op, local, full: {op.peak: op.operands[0].elements(local)},
        check=_check_top,
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
