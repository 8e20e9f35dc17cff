"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), its key projection absorbed by the query.

A cached entry is one vector of `width` elements for all heads: `rank` that keys and values are made from, then those of
a rotary key. Queries have, per head, elements without rotation first and rotary ones last.

- `latent_norm`: RMS norm of the first elements of an entry, as many as the gain has; the others stay as they are.
- `absorb_query`: queries (… head query) by the key projection (head nope rank) → (… head rank). Only the first `nope`
  elements of a query take part.
- `latent_attention`: absorbed queries (… head rank), the queries (… head query) for their rotary elements, entries
  (batch, positions, width), and with `select` the ids of the chosen entries (…, chosen) → values (… head rank), to be
  projected per head after that. All heads share the entries, so a cut of heads leaves them whole on every rank.

With `causal` a query attends what stands no later than itself: entry e of C is seen by query i of S from e/C ≤ i/S on.
`value_bytes` is the size of one output row, beside which a partial row carries its statistics. Tokens are counted by
the labels `batch` and `seq` or `draft`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, REPLICATED, Cut, CutKind
from rooflang.ir.kinds.attention import LSE_BYTES
from rooflang.ir.kinds.rows import expect, expect_labels, expect_rank, par, pars
from rooflang.ir.kinds.rows import positions as tokens_of
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check_norm(op: Op) -> None:
    expect(op, 2)
    x, gain = op.operands
    expect_labels(op, x.dims, op.output.dims, x.name)
    expect_rank(op, 1, "normed elements")
    if len(x.dims) < 2 or gain.dims[0] in x.dims:
        raise GraphError(f"{op.name}: {gain.name} has the dim {gain.dims[0]}", expected="a dim that the entries lack")


def _check_norm_sizes(op: Op, sizes: Mapping[str, int]) -> None:
    _expect_within(op, sizes, op.operands[1].dims[0], op.operands[0].dims[-1])


def _expect_within(op: Op, sizes: Mapping[str, int], part: str, whole: str) -> None:
    if sizes[part] > sizes[whole]:
        raise GraphError(f"{op.name}: {part} has {sizes[part]} elements", expected=f"at most {sizes[whole]} of {whole}")


def _norm_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: 4.0 * op.output.elements(local)}


def _norm_cuts(op: Op) -> tuple[Cut, ...]:
    return tuple(pars(op, [d for d in op.output.dims if d != op.operands[0].dims[-1]]))


def _check_absorb(op: Op) -> None:
    expect(op, 2)
    q, weight = op.operands
    expect_rank(op, 1, "head", "unrotated query", "rank")
    head, nope, rank = weight.dims
    if len(q.dims) < 3 or q.dims[-2] != head or {nope, rank} & set(q.dims):
        raise GraphError(f"{op.name}: {q.name} has the dims {' '.join(q.dims)}", expected=f"… {head}, query")
    expect_labels(op, op.output.dims, (*q.dims[:-1], rank), "the output")


def _check_absorb_sizes(op: Op, sizes: Mapping[str, int]) -> None:
    _expect_within(op, sizes, op.operands[1].dims[1], op.operands[0].dims[-1])


def _absorb_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    return {op.peak: 2.0 * op.output.elements(local) * local[op.operands[1].dims[1]]}


def _absorb_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return 1.0 if index else full[op.operands[1].dims[1]] / full[op.operands[0].dims[-1]]


def _check_attention(op: Op) -> None:
    expect(op, 4 if op.attr("select") else 3)
    absorbed, q = op.operands[:2]
    expect_labels(op, absorbed.dims, op.output.dims, absorbed.name)
    expect_labels(op, q.dims[:-1], absorbed.dims[:-1], q.name)
    expect_rank(op, 2, "batch", "positions", "width")
    batch, positions, width = op.operands[2].dims
    if len(q.dims) < 3 or batch not in q.dims[:-2] or {positions, width} & {*q.dims, *absorbed.dims}:
        raise GraphError(
            f"{op.name}: the entries have the dims {batch} {positions} {width}, the queries {' '.join(q.dims)}",
            expected="batch, positions, width for queries batch … head query",
        )
    for chosen in op.operands[3:]:
        if set(chosen.dims[:-1]) != set(q.dims[:-2]) or chosen.dims[-1] in {*q.dims, *absorbed.dims, positions, width}:
            raise GraphError(f"{op.name}: {chosen.name} has the dims {' '.join(chosen.dims)}", expected="tokens, ids")
    if op.attr("causal") and "seq" not in q.dims:
        raise GraphError(f"{op.name}: nothing is causal about queries without the dim 'seq'")


def _check_attention_sizes(op: Op, sizes: Mapping[str, int]) -> None:
    rank, width, query = op.operands[0].dims[-1], op.operands[2].dims[2], op.operands[1].dims[-1]
    _expect_within(op, sizes, rank, width)
    if sizes[width] - sizes[rank] > sizes[query]:
        raise GraphError(
            f"{op.name}: entries have {sizes[width] - sizes[rank]} rotary elements, queries {sizes[query]} in all"
        )


def attended(op: Op, full: Sizes) -> Num:
    """Entries that a query attends, on average over the queries."""
    entries = full[op.operands[2].dims[1]]
    most = min(op.attr("select") or entries, entries)
    if not op.attr("causal"):
        return most
    # Query i of S sees (i + 1)·C/S entries, up to `most`: a ramp, then a plateau.
    ramp = most * full["seq"] / entries
    return (most * (ramp + 1) / 2 + most * (full["seq"] - ramp)) / full["seq"]


def _attention_flops(op: Op, local: Sizes, full: Sizes) -> Mapping[str, Num]:
    """A score takes 2 FLOPs an element of the entry, the weighted sum 2 an element of its rank."""
    _, positions, width = op.operands[2].dims
    *labels, rank = op.operands[0].dims
    rows = math.prod(local[d] for d in labels)
    keys = attended(op, full) * (local[positions] / full[positions])
    return {op.peak: 2.0 * rows * keys * (full[width] + full[rank])}


def _attention_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """Of the queries the rotary elements, of the entries those that some query of this rank may have chosen."""
    _, positions, width = op.operands[2].dims
    if index == 1:
        return (full[width] - full[op.operands[0].dims[-1]]) / full[op.operands[1].dims[-1]]
    if index == 2 and op.attr("select"):
        tokens = tokens_of(op.output.dims, local)
        return min(1.0, tokens * min(op.attr("select"), full[positions]) / full[positions])
    return 1.0


def _attention_cuts(op: Op) -> tuple[Cut, ...]:
    positions = op.operands[2].dims[1]
    fold = Cut(
        kind=CutKind.FOLD,
        dim=positions,
        operands=tuple(positions if i == 2 else REPLICATED for i in range(len(op.operands))),
        out=PARTIAL,
        loops=(positions,),
        combine="lse",
        partial_scale=1.0 + LSE_BYTES / op.attr("value_bytes", 1024.0),
    )
    return (*pars(op, op.operands[0].dims[:-1]), fold)


register(
    OpKind(
        name="latent_norm",
        summary="RMS norm of the first elements of an entry, times a gain; operands: entries, gain",
        cuts=_norm_cuts,
        flops=_norm_flops,
        check=_check_norm,
        check_sizes=_check_norm_sizes,
    )
)
register(
    OpKind(
        name="absorb_query",
        summary="queries by the key projection of MLA, per head; operands: queries, projection",
        cuts=lambda op: tuple(par(op, d) for d in op.output.dims),
        flops=_absorb_flops,
        read_fraction=_absorb_read,
        check=_check_absorb,
        check_sizes=_check_absorb_sizes,
    )
)
register(
    OpKind(
        name="latent_attention",
        summary="softmax attention of absorbed queries to latent entries; context shards merge by log-sum-exp",
        cuts=_attention_cuts,
        flops=_attention_flops,
        read_fraction=_attention_read,
        attrs={"select": (int,), "causal": (bool,), "value_bytes": NUMBER},
        check=_check_attention,
        check_sizes=_check_attention_sizes,
    )
)
