"""Parts of a dim: `segment` takes consecutive elements out, `view` reads one dim as two, `rename` as another.

A fused projection makes [q | k | v] along one dim; `segment` takes one of them out, as long as the new dim, that comes
`after` segments as long as the labels named there. A contiguous cut of the fused dim is no cut of a segment: a rank
would hold other elements than its share of the segment (all of q and none of v, say), so there is no such row. Cut the
projection by a label that every segment has instead (the head, or `gate` for gate·up), or project them apart.

`view` reads element o·I + i of a dim as (o, i). A cut of the dim at multiples of I is a cut of the outer label.
`rename` reads a dim under another label, so that a product can go from a label to itself. `part` names a segment
where it lies, and moves nothing: what a joint product makes (`rooflang.ir.kinds.joint`) is read by parts.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflang.assumptions import Assumptions
from rooflang.errors import GraphError
from rooflang.ir.cut import Cut, CutKind
from rooflang.ir.kinds.rows import expect, linear, no_traffic, pars
from rooflang.ir.op import Op, OpKind, Sizes, register
from rooflang.ir.tensor import Num

PART = "part"


def parted(op: Op) -> tuple[str, tuple[str, ...]]:
    """The label that is taken apart, and those that take its place."""
    x, out = op.operands[0].dims, op.output.dims
    (old,) = (d for d in x if d not in out)
    return old, tuple(d for d in out if d not in x)


def start(op: Op, sizes: Mapping[str, int]) -> int:
    """The first element of a segment."""
    return sum(sizes[label] for label in op.attr("after", ()))


def _check_parted(op: Op) -> None:
    expect(op, 1)
    x, out = op.operands[0].dims, op.output.dims
    new = 2 if op.kind == "view" else 1
    if len(set(x) - set(out)) != 1 or len(set(out) - set(x)) != new:
        raise GraphError(
            f"{op.name}: {op.kind} of {' '.join(x)} has the dims {' '.join(out)}",
            expected=f"one dim replaced by {new}",
        )


def _check_segment(op: Op, sizes: Mapping[str, int]) -> None:
    old, (new,) = parted(op)
    unknown = [label for label in op.attr("after", ()) if label not in sizes]
    if unknown:
        raise GraphError(f"{op.name}: comes after a segment as long as {unknown[0]!r}, which has no size")
    if start(op, sizes) + sizes[new] > sizes[old]:
        raise GraphError(f"{op.name}: {sizes[new]} elements from {start(op, sizes)} on, of {sizes[old]}")


def _check_view(op: Op, sizes: Mapping[str, int]) -> None:
    old, (outer, inner) = parted(op)
    if sizes[old] != sizes[outer] * sizes[inner]:
        raise GraphError(f"{op.name}: {sizes[old]} elements as {sizes[outer]} × {sizes[inner]}")


def _check_renamed(op: Op, sizes: Mapping[str, int]) -> None:
    old, (new,) = parted(op)
    if sizes[old] != sizes[new]:
        raise GraphError(f"{op.name}: {sizes[old]} elements as {sizes[new]}")


def _segment_cuts(op: Op) -> tuple[Cut, ...]:
    _, new = parted(op)
    return (*pars(op, [d for d in op.output.dims if d not in new]), linear(op, (0,)))


def _segment_refuses(op: Op) -> Mapping[str, str]:
    old, (new,) = parted(op)
    why = f"a contiguous cut of all segments is no cut of this one: shards of {old} are not shards of {new}"
    return {old: why, new: why}


def _view_refuses(op: Op) -> Mapping[str, str]:
    old, (outer, inner) = parted(op)
    return {inner: f"a contiguous shard of {old} has whole rows of {inner}: cut {outer}, or reshard"}


def _view_cuts(op: Op) -> tuple[Cut, ...]:
    """By what stays, and by the dim: a run of its elements is the same run of the first label that takes its place."""
    old, (outer, *inner) = parted(op)
    blocks = Cut(
        kind=CutKind.PAR,
        dim=outer,
        operands=(old,),
        out=outer,
        loops=(old, outer),
        grouped=(old, outer),
    )
    return (*pars(op, [d for d in op.output.dims if d not in (outer, *inner)]), blocks, linear(op, (0,)))


def _segment_read(op: Op, index: int, local: Sizes, full: Sizes, assumptions: Assumptions) -> Num:
    old, (new,) = parted(op)
    return full[new] / full[old]


register(
    OpKind(
        name="segment",
        summary="consecutive elements of a dim: one segment of a fused projection",
        cuts=_segment_cuts,
        read_fraction=_segment_read,
        attrs={"after": (tuple,)},
        refuses=_segment_refuses,
        check=_check_parted,
        check_sizes=_check_segment,
        linear=True,
    )
)
register(
    OpKind(
        name=PART,
        summary="a segment where it lies: one of the products that a joint one makes",
        cuts=_segment_cuts,
        read_fraction=no_traffic,
        write_fraction=lambda op, local, full: 0.0,
        attrs={"after": (tuple,), "outer": (Op,), "inner": (Op,)},
        refuses=_segment_refuses,
        check=_check_parted,
        check_sizes=_check_segment,
        linear=True,
        range=True,
    )
)
register(
    OpKind(
        name="view",
        summary="one dim read as two",
        cuts=_view_cuts,
        read_fraction=no_traffic,
        write_fraction=lambda op, local, full: 0.0,
        refuses=_view_refuses,
        check=_check_parted,
        check_sizes=_check_view,
        linear=True,
    )
)
register(
    OpKind(
        name="rename",
        summary="one dim under another label",
        cuts=_view_cuts,
        read_fraction=no_traffic,
        write_fraction=lambda op, local, full: 0.0,
        check=_check_parted,
        check_sizes=_check_renamed,
        linear=True,
    )
)
