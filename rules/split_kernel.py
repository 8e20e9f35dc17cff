"""split_kernel: an operator is cut along a dim of its signature, over one more mesh axis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rooflang.ir.cut import Cut, CutKind
from rooflang.ir.op import Op, op_kind, signature
from rooflang.rules.examples import attention_then_add, mlp
from rooflang.rules.record import Egglog, Exactness, Ok, Refusal, Rule, Verdict
from rooflang.rules.text import decide_by_row
from rooflang.rules.theory import Shape, Theory, partial_combines, unsummable

NAME = "split_kernel"


def check(
    op: Op,
    dim: str,
    *,
    kind: CutKind | None = None,
    partials: Mapping[str, frozenset[str]] | None = None,
    sizes: Mapping[str, int] | None = None,
    parts: int = 1,
    local: Collection[str] = (),
) -> Verdict:
    """May `op` be cut along `dim`? `Ok` carries the `Cut`.

    `kind` asks for one way to join the shards again (default: the one that the signature has). `partials` says how
    partial values of the operands are combined (`theory.partial_combines` of the operators before it); only cuts that
    read partial operands need it. With `sizes` (extent of each label) and `parts` the shards' alignment is checked too.
    `local` are labels that ranks would count from 0 in their own shard.
    """
    rows = [cut for cut in signature(op) if cut.kind is not CutKind.ROUTE]
    cut = next((row for row in rows if row.dim == dim), None)
    if cut is None:
        return _no_row(op, dim, rows)
    if kind is not None and kind is not cut.kind:
        return Refusal(code="other-join", reason=f"{op.kind} {op.name} cut along {dim!r}: {_JOINS[cut.kind]}")
    if local:
        reason = f"{', '.join(local)} of {op.name} are numbered over all shards; a rank's own count means other entries"
        return Refusal(code="global-ids", reason=reason)
    summand = unsummable(op, cut, partials or {})
    if summand is not None:
        reason = f"partial values of {summand.name} are no summands, so that {op.name} cannot pass them on"
        return Refusal(code="other-combine", reason=reason)
    size = (sizes or {}).get(dim)
    if size is not None and cut.multiple_of > 1 and size % (cut.multiple_of * parts):
        reason = f"{dim} has {size} entries, which cannot be cut into {parts} at multiples of {cut.multiple_of}"
        return Refusal(code="unaligned", reason=reason)
    if sizes is not None and cut.grouped and parts > 1 and _torn(cut, sizes):
        members, groups = cut.grouped
        reason = (
            f"{members} has {sizes[members]} entries, which are not {sizes[groups]} groups ({groups}) of one size, so "
            "that a shard would end inside a group"
        )
        return Refusal(code="unaligned", reason=reason)
    return Ok(result=cut)


def _torn(cut: Cut, sizes: Mapping[str, int]) -> bool:
    """Are even shards of members other than those of whole groups, where the extents of both are known?"""
    members, groups = (sizes.get(label, 0) for label in cut.grouped)
    return members > 0 and groups > 0 and members % groups > 0


#: How the shards of a cut are joined, and that no less will do.
_JOINS = {
    CutKind.PAR: "shards of the output are put side by side, nothing is to be combined",
    CutKind.SUM: "partial outputs have to be added up before anything else is done with them",
    CutKind.FOLD: "partial states have to be combined by the operator's own monoid; a shard's result is not it",
    CutKind.STAT: "shards exchange a summary first: a shard's own top-k, mean or softmax is another one",
    CutKind.SCAN: "a shard begins with the state that the shards before it leave",
    CutKind.LINEAR: "summands pass through and stay summands",
}


def _no_row(op: Op, dim: str, rows: Iterable[Cut]) -> Refusal:
    why = op_kind(op.kind).refuses(op).get(dim)
    if why is not None:
        return Refusal(code="unsound-cut", reason=f"{op.kind} {op.name} cannot be cut along {dim!r}: {why}")
    known = ", ".join(dict.fromkeys(row.dim for row in rows)) or "nothing"
    effect = "" if op_kind(op.kind).pure else " It has side effects, which no cut may repeat."
    return Refusal(
        code="no-such-cut",
        reason=f"{op.kind} {op.name} cannot be cut along {dim!r}; its signature has {known}.{effect}",
    )


def facts(theory: Theory) -> Iterable[str]:
    """`(Cut<n> kernel row c0 … co)`: one fact per row of a signature, a digit per operand and for the output."""
    for kernel, op in enumerate(theory.kernels):
        for index, cut in theory.rows(op):
            if cut.kind is not CutKind.ROUTE:
                digits = " ".join(str(theory.codes[entry]) for entry in (*cut.operands, cut.out))
                yield f"(Cut{len(op.operands)} {kernel} {index} {digits})"


def rules(shape: Shape) -> tuple[str, ...]:
    return tuple(decide_by_row("Cut", arity, NAME) for arity in shape.arities)


def _fires() -> Verdict:
    return check(mlp().op_by_name["up"], "ffn")


def _refused() -> Verdict:
    graph = attention_then_add()
    return check(graph.op_by_name["y"], "partial", partials=partial_combines(graph.ops))


RULE = Rule(
    name=NAME,
    summary="cut an operator along a dim, so that each coordinate of an axis does a share of it",
    before="op(x, w)",
    after="join[a](op(scatter[d,a] of every operand that has d, broadcast[a] of the others)), join = gather or reduce",
    why=(
        "a row of the dims signature says that shards of the output come from shards of operands, and which combine "
        "joins them: gather for a dim of the output (exact), the operator's own reduction for one that it sums or folds"
    ),
    preconditions=(
        "the signature has a row for the dim",
        "operands read as summands are summands: log-sum-exp or top-k states are not",
        "shards are multiples of the row's alignment, and whole groups of what it groups",
        "ranks number positions, experts, heads and ids as the whole does",
        "the axis has not been used for this operator yet",
    ),
    exactness=Exactness.REASSOCIATING,
    evidence=(
        "every cut of every kind, on uneven, empty and scattered shards over one and "
        "two axes, equals the whole exactly; every pair of rows is derived from the primitives"
    ),
    check=check,
    fires=_fires,
    refused=_refused,
    egglog=Egglog(rules=rules, facts=facts),
)
