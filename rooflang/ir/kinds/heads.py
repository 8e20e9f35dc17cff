"""Heads and their groups: `repeat` gives every member of a group what the group has, `flatten` numbers members of all
groups in one dim.

M members share G groups in runs of ⌈M/G⌉, as in `grouped_attention`: member m reads group m ÷ ⌈M/G⌉, m being its number
among *all* members. Members may be cut with their groups, or by themselves, every rank holding all groups.

`flatten` reads (o, i) as element o·I + i of one dim: a fused projection of queries, keys and values by key-value head,
say, has its queries as (key-value head, head in group). A cut of the dim at multiples of I is a cut of the outer label.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.errors import GraphError
from rooflang.ir.cut import REPLICATED, Cut, CutKind
from rooflang.ir.kinds.rows import expect, linear, no_traffic, pars
from rooflang.ir.op import Op, OpKind, register


def replaced(op: Op) -> tuple[tuple[str, ...], str]:
    """The labels that the output lacks, in the order of the operand, and the one that takes their place."""
    x, out = op.operands[0].dims, op.output.dims
    (new,) = (d for d in out if d not in x)
    return tuple(d for d in x if d not in out), new


def _check(op: Op) -> None:
    expect(op, 1)
    x, out = op.operands[0].dims, op.output.dims
    old = 2 if op.kind == "flatten" else 1
    if len(set(out) - set(x)) != 1 or len(set(x) - set(out)) != old:
        raise GraphError(
            f"{op.name}: {op.kind} of {' '.join(x)} has the dims {' '.join(out)}",
            expected="two dims replaced by one" if old == 2 else "one dim replaced by another",
        )


def _check_repeat(op: Op, sizes: Mapping[str, int]) -> None:
    (group,), member = replaced(op)
    if sizes[group] > sizes[member]:
        raise GraphError(f"{op.name}: {sizes[group]} groups for {sizes[member]} members")


def _check_flatten(op: Op, sizes: Mapping[str, int]) -> None:
    (outer, inner), new = replaced(op)
    if sizes[new] != sizes[outer] * sizes[inner]:
        raise GraphError(f"{op.name}: {sizes[outer]} × {sizes[inner]} elements as {sizes[new]}")


def _together(op: Op) -> Cut:
    """Members cut with their groups, elements with their outer label."""
    (group, *_), member = replaced(op)
    return Cut(
        kind=CutKind.PAR,
        dim=group,
        operands=(group,),
        out=member,
        loops=(group, member),
        grouped=(member, group),
    )


def _others(op: Op) -> list[Cut]:
    _, new = replaced(op)
    return pars(op, [d for d in op.output.dims if d != new])


def _repeat_cuts(op: Op) -> tuple[Cut, ...]:
    _, member = replaced(op)
    alone = Cut(kind=CutKind.PAR, dim=member, operands=(REPLICATED,), out=member, loops=(member,))
    return (*_others(op), alone, _together(op), linear(op, (0,)))


def _flatten_cuts(op: Op) -> tuple[Cut, ...]:
    return (*_others(op), _together(op), linear(op, (0,)))


def _flatten_refuses(op: Op) -> Mapping[str, str]:
    (outer, inner), new = replaced(op)
    return {inner: f"shards of {inner} lie scattered over {new}: cut {outer}, or reshard"}


register(
    OpKind(
        name="repeat",
        summary="every member of a group has what the group has",
        cuts=_repeat_cuts,
        read_fraction=no_traffic,
        write_fraction=lambda op, local, full: 0.0,
        check=_check,
        check_sizes=_check_repeat,
        linear=True,
    )
)
register(
    OpKind(
        name="flatten",
        summary="two dims read as one",
        cuts=_flatten_cuts,
        read_fraction=no_traffic,
        write_fraction=lambda op, local, full: 0.0,
        refuses=_flatten_refuses,
        check=_check,
        check_sizes=_check_flatten,
        linear=True,
    )
)
