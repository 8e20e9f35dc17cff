"""Mixture of experts: routing, dispatch, combine.

Routed tensors carry the token dims and the expert dim; `fill` = k/E says that a token has rows at k of E experts.
Gates hold the weight of every chosen expert and 0 for the others. `route` chooses by the logits, or, with a second
operand (expert), by these or their `sigmoid` plus a bias (DeepSeek-V3, arXiv 2412.19437, section 2.1.2). `scores` says
what a weight is: the softmax over the `chosen` logits, that over all of them (`softmax`), or the logit's `sigmoid`, the
latter two divided by their sum over the chosen with `renormalise`.

Dispatch and combine may be cut by tokens, by the hidden dim, by experts, or *routed*: tokens cut on one side, experts
on the other, with the all-to-all inside the kernel (the named fusion of a token cut and its all-to-all).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.attention import LSE_BYTES
from rooflang.ir.kinds.rows import expect, expect_labels, linear, par
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

#: What the weights of chosen experts are, by the attribute `scores`; the first is the default.
SCORES = ("chosen", "softmax", "sigmoid")

#: Bytes of one routing decision: an INT32 expert id and an FP32 weight.
DECISION_BYTES = 8.0


def expert_label(op: Op) -> str:
    return str(op.attr("expert", "expert"))


def expert_labels(ops: Iterable[Op]) -> frozenset[str]:
    """Labels of the experts that the operators route tokens to."""
    return frozenset(expert_label(op) for op in ops if op.kind in ("dispatch", "combine"))


def _tokens(op: Op) -> tuple[str, ...]:
    """Labels of tokens: those of the gates without the expert label."""
    gates = op.operands[0] if op.kind in ("route", "hash_route") else op.operands[1]
    return tuple(d for d in gates.dims if d != expert_label(op))


def _check_routed(op: Op) -> None:
    expect(op, 2)
    gates = op.operands[1]
    plain, routed = (op.operands[0], op.output) if op.kind == "dispatch" else (op.output, op.operands[0])
    for tensor in (routed, gates):
        if expert_label(op) not in tensor.dims:
            raise GraphError(f"{op.name}: {tensor.name} lacks the expert dim {expert_label(op)!r}")
    expect_labels(op, routed.dims, (*plain.dims, expert_label(op)), routed.name)
    if not set(_tokens(op)) < set(plain.dims):
        raise GraphError(
            f"{op.name}: {plain.name} has the dims {' '.join(plain.dims)}",
            expected=f"{' '.join(_tokens(op))} and one that the gates lack",
        )


def _check_route(op: Op) -> None:
    expect(op, 1 + len(op.operands[1:2]))
    _check_logits(op)
    for bias in op.operands[1:]:
        expect_labels(op, bias.dims, (expert_label(op),), bias.name)
    if op.attr("top_k", 1) < 1:
        raise GraphError(f"{op.name}: top_k={op.attr('top_k')}", expected="1 or more")
    if op.attr("scores", SCORES[0]) not in SCORES:
        raise UnknownNameError("score", op.attr("scores"), SCORES, where=op.name)
    if op.operands[1:] and op.attr("scores") == "softmax":
        raise GraphError(f"{op.name}: what is added to a softmax over all experts is not known to a share of them")


def _check_logits(op: Op) -> None:
    logits = op.operands[0]
    expect_labels(op, logits.dims, op.output.dims, logits.name)
    if expert_label(op) not in logits.dims:
        raise GraphError(f"{op.name}: {logits.name} lacks the expert dim {expert_label(op)!r}")


def _check_hash(op: Op) -> None:
    expect(op, 3)
    _check_logits(op)
    expect_labels(op, op.operands[1].dims, _tokens(op), op.operands[1].name)
    table = op.operands[2]
    if len(table.dims) not in (1, 2) or set(table.dims) & set(op.operands[0].dims):
        raise GraphError(
            f"{op.name}: {table.name} has the dims {' '.join(table.dims)}",
            expected="token ids and, if a token has several experts, a dim of these",
        )


def _route_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """Softmax or a like scoring function over all experts: 5 FLOPs a logit."""
    logits = op.operands[0]
    return {"bf16": 5.0 * logits.elements(local)}


def _route_cuts(op: Op) -> tuple[Cut, ...]:
    rows = tuple(par(op, d) for d in _tokens(op))
    if op.kind == "hash_route":
        return rows
    expert = expert_label(op)
    # Experts are chosen on the *full* logits: shards exchange their top-k candidates first. A local top-k is wrong.
    # Where the chosen are weighed by all, or chosen by other numbers than they are weighed by, these travel too.
    softmax, biased = op.attr("scores") == "softmax", len(op.operands) > 1
    choose = Cut(
        kind=CutKind.STAT,
        dim=expert,
        operands=(expert,) * len(op.operands),
        out=expert,
        loops=(expert,),
        combine="topk",
        stat_rows=_tokens(op),
        stat_bytes=(DECISION_BYTES + 4.0 * biased) * op.attr("top_k", 1) + LSE_BYTES * softmax,
    )
    return (*rows, choose)


def _hash_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """Only the table rows of the tokens present are read."""
    if index != 2:
        return 1.0
    tokens = op.operands[1].elements(local)
    rows = full[op.operands[2].dims[0]]
    return tokens / rows * (tokens < rows) + 1.0 * (tokens >= rows)


def _hidden(op: Op) -> str:
    plain = op.operands[0] if op.kind == "dispatch" else op.output
    return next(d for d in reversed(plain.dims) if d not in _tokens(op))


def _dispatch_cuts(op: Op) -> tuple[Cut, ...]:
    tokens, expert, hidden = _tokens(op), expert_label(op), _hidden(op)
    owned = Cut(kind=CutKind.PAR, dim=expert, operands=(REPLICATED, REPLICATED), out=expert, loops=(expert,))
    routed = tuple(Cut(kind=CutKind.ROUTE, dim=d, operands=(d, d), out=expert, loops=(d,)) for d in tokens)
    return (*(par(op, d) for d in tokens), par(op, hidden), owned, *routed)


def _combine_cuts(op: Op) -> tuple[Cut, ...]:
    tokens, expert, hidden = _tokens(op), expert_label(op), _hidden(op)
    owned = Cut(kind=CutKind.SUM, dim=expert, operands=(expert, REPLICATED), out=PARTIAL, loops=(expert,))
    routed = tuple(Cut(kind=CutKind.ROUTE, dim=d, operands=(expert, d), out=d, loops=(d,)) for d in tokens)
    return (*(par(op, d) for d in tokens), par(op, hidden), owned, linear(op, (0,)), *routed)


def _combine_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """A multiply and an add per routed element."""
    return {op.peak: 2.0 * op.operands[0].elements(local)}


register(
    OpKind(
        name="route",
        summary="top-k experts and their weights from the full logits; operands: logits, and a bias of the choice",
        cuts=_route_cuts,
        flops=_route_flops,
        attrs={"expert": (str,), "top_k": (int,), "scores": (str,), "renormalise": (bool,)},
        check=_check_route,
    )
)
register(
    OpKind(
        name="hash_route",
        summary="experts from a token table, weights from the logits; operands: logits, token ids, table",
        cuts=_route_cuts,
        flops=_route_flops,
        read_fraction=_hash_read,
        attrs={"expert": (str,), "top_k": (int,)},
        check=_check_hash,
    )
)
register(
    OpKind(
        name="dispatch",
        summary="a row for every (token, chosen expert); operands: tokens, gates",
        cuts=_dispatch_cuts,
        attrs={"expert": (str,)},
        check=_check_routed,
        linear=True,
    )
)
register(
    OpKind(
        name="combine",
        summary="weighted sum of the chosen experts' rows; operands: rows, gates",
        cuts=_combine_cuts,
        flops=_combine_flops,
        attrs={"expert": (str,)},
        check=_check_routed,
        linear=True,
    )
)
