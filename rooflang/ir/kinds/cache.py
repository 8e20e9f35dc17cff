"""The KV cache: pooling a prompt into it, its sliding window, and appending a decode step to it.

Pooling and appending turn a compressor's projections into entries. Labels of the projections that an entry lacks
(value and gate, overlapping halves) are consumed by the gated mean over the positions of the entry; an entry is the
same along labels that only it has. `fused` says that a pool is the epilogue of the operator that made its operand: it
reads nothing. Entry e of C pools the positions from e·r up to (e+1)·r of S, where r = ⌈S/C⌉: a cut of the positions at
multiples of r is a cut of the entries.

An append makes one entry and writes it at the last position of the cache; with `positions`, a label of the new entries,
it makes one for each of them, written at as many last positions. It writes into the cache's memory, so it may not
simply be duplicated: two writers of one cache would race. It is cut by request, by key-value head, by context (the
rank that owns a position writes), or run on replicas that each own a whole cache (`replica`).
"""

from __future__ import annotations

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import contracted, expect, expect_labels, pars
from rooflang.ir.op import NUMBER, Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num


def _check_pool(op: Op) -> None:
    expect(op, 1)
    x, entries = op.operands[0], op.output
    good = len(x.dims) > 1 and len(entries.dims) > 1 and x.dims[0] == entries.dims[0]
    if not good or x.dims[1] in entries.dims or entries.dims[1] in x.dims:
        raise GraphError(
            f"{op.name}: {op.kind} of {' '.join(x.dims)} has the dims {' '.join(entries.dims)}",
            expected="batch positions …, and batch entries …",
        )


def _check_window(op: Op) -> None:
    _check_pool(op)
    x, window = op.operands[0], op.output
    expect_labels(op, window.dims[2:], x.dims[2:], "the window")


def _apart(op: Op) -> list[str]:
    """Labels along which entries are independent: of requests, and of what an entry has beside its width, such as
    key-value heads, where the source has it too."""
    batch, _, *others = op.output.dims
    return [batch, *(d for d in others[:-1] if d in op.operands[0].dims)]


def _pool_cuts(op: Op) -> tuple[Cut, ...]:
    source, target = op.operands[0].dims[1], op.output.dims[1]
    pooled = Cut(
        kind=CutKind.PAR,
        dim=source,
        operands=(source,),
        out=target,
        loops=(source, target),
        grouped=(source, target),
    )
    return (*pars(op, _apart(op)), pooled)


def _pool_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return 0.0 if op.attr("fused") else 1.0


def _window_cuts(op: Op) -> tuple[Cut, ...]:
    return (*pars(op, _apart(op)), contracted(op, op.operands[0].dims[1]))


def _window_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return min(1.0, full[op.output.dims[1]] / full[op.operands[0].dims[1]])


def _check_append(op: Op) -> None:
    expect(op, 2)
    new, cache = op.operands
    if cache.dims != op.output.dims:
        raise GraphError(f"{op.name}: an append keeps the dims of the cache, its second operand")
    if len(cache.dims) < 2 or cache.dims[0] not in new.dims or cache.dims[1] in new.dims:
        raise GraphError(
            f"{op.name}: appends {' '.join(new.dims)} to {' '.join(cache.dims)}",
            expected="batch …, to batch positions …",
        )
    several = op.attr("positions")
    if several is not None and several not in new.dims[1:]:
        raise GraphError(f"{op.name}: {new.name} has no positions {several!r}", expected=" ".join(new.dims[1:]))


def _append_cuts(op: Op) -> tuple[Cut, ...]:
    context = op.output.dims[1]
    owner = Cut(kind=CutKind.PAR, dim=context, operands=(REPLICATED, context), out=context, loops=())
    replica = Cut(kind=CutKind.PAR, dim="replica", operands=(REPLICATED, REPLICATED), out=REPLICATED)
    return (*pars(op, _apart(op)), owner, replica)


def _append_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    return 0.0 if index == 1 else 1.0


def _append_write(op: Op, local: Sizes, full: Sizes) -> Num:
    """Entries written per step (`rate`: 1 for a plain cache, 1/r where r tokens make one entry) of all entries."""
    return min(1.0, op.attr("rate", 1.0) / local[op.output.dims[1]])


register(
    OpKind(
        name="pool",
        summary="compress a prompt's projections into context entries: the positions are relabelled",
        cuts=_pool_cuts,
        read_fraction=_pool_read,
        attrs={"fused": (bool,)},
        check=_check_pool,
    )
)
register(
    OpKind(
        name="last_window",
        summary="the last positions of a sequence; ranks that do not hold them contribute zeros",
        cuts=_window_cuts,
        read_fraction=_window_read,
        check=_check_window,
    )
)
register(
    OpKind(
        name="kv_append",
        summary="cache with this step's entries written; operands: new entries, cache",
        cuts=_append_cuts,
        read_fraction=_append_read,
        write_fraction=_append_write,
        attrs={"rate": NUMBER, "positions": (str,)},
        check=_check_append,
        pure=False,
        in_place=1,
    )
)
