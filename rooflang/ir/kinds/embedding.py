"""The two ends of a language model: embedding rows, the last token of a prompt, and the choice of the next token.

A `last_token` that is `whole` has all positions together before it picks one, and reads them all: its sequence is not
cut. `fill_in` takes vectors that come from elsewhere (an image, say) in the place of the first ones of a sequence; that
they stand first stands for wherever they do.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import PARTIAL, Cut, CutKind
from rooflang.ir.kinds.rows import contracted, expect, expect_labels, expect_rank, linear, par, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check_embed(op: Op) -> None:
    expect(op, 2)
    expect_rank(op, 1, "vocabulary", "hidden")
    ids, table = op.operands
    if set(ids.dims) & set(table.dims):
        raise GraphError(f"{op.name}: {ids.name} and {table.name} share a dim", expected="dims of their own")
    expect_labels(op, op.output.dims, (*ids.dims, table.dims[1]), "the output")


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


def _check_last(op: Op) -> None:
    expect(op, 1)
    x = op.operands[0]
    if not set(op.output.dims) < set(x.dims) or len(x.dims) != len(op.output.dims) + 1:
        raise GraphError(
            f"{op.name}: last_token of {' '.join(x.dims)} has the dims {' '.join(op.output.dims)}",
            expected="the same without the positions",
        )


def _last_cuts(op: Op) -> tuple[Cut, ...]:
    (seq,) = (d for d in op.operands[0].dims if d not in op.output.dims)
    return (*pars(op, op.output.dims), *([] if op.attr("whole") else [contracted(op, seq)]))


def _last_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return 1.0 if op.attr("whole") else op.output.elements(local) / op.operands[0].elements(local)


def _check_fill(op: Op) -> None:
    expect(op, 2)
    x, given = op.operands
    expect_labels(op, x.dims, op.output.dims, x.name)
    if len(set(x.dims) - set(given.dims)) != 1 or len(set(given.dims) - set(x.dims)) != 1:
        raise GraphError(f"{op.name}: {given.name} has the dims {' '.join(given.dims)}", expected="other positions")


def filled(op: Op) -> tuple[str, str]:
    """Labels of the positions of the sequence, and of the vectors that are given."""
    x, given = (set(t.dims) for t in op.operands)
    return (x - given).pop(), (given - x).pop()


def _fill_cuts(op: Op) -> tuple[Cut, ...]:
    return (*pars(op, op.output.dims), linear(op, (0, 1)))


def _fill_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    """Each position comes from one operand."""
    positions, given = filled(op)
    if index == 0:
        return 1.0 - min(1.0, full[given] / full[positions])
    return local[positions] / full[positions]


def _check_argmax(op: Op) -> None:
    expect(op, 1)
    if not op.operands[0].dims:
        raise GraphError(f"{op.name}: {op.operands[0].name} has no dim to choose from")
    expect_labels(op, op.output.dims, op.operands[0].dims[:-1], "the output")


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
        check=_check_embed,
    )
)
register(
    OpKind(
        name="last_token",
        summary="the last position of a sequence; ranks that do not hold it contribute zeros",
        cuts=_last_cuts,
        read_fraction=_last_read,
        attrs={"whole": (bool,)},
        check=_check_last,
    )
)
register(
    OpKind(
        name="fill_in",
        summary="a sequence with its first positions from elsewhere; operands: the sequence, what is given",
        cuts=_fill_cuts,
        read_fraction=_fill_read,
        check=_check_fill,
        linear=True,
    )
)
register(
    OpKind(
        name="argmax",
        summary="id of the largest logit, the smaller id on a tie",
        cuts=_sample_cuts,
        flops=_sample_flops,
        check=_check_argmax,
    )
)
