"""Operators of ATen that move nothing, or only names: views, transposes, casts, and pieces of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rooflang.importers.axes import Axis
from rooflang.importers.draft import AxisName, Made, Value
from rooflang.importers.step import Step, grouped_shapes


def _same(step: Step) -> Value | None:
    """The same value: casts, copies, dropout outside of training."""
    return step.tensor(0)


def _permute(step: Step) -> Value | None:
    x = step.tensor(0)
    return None if x is None else Value(made=x.made, axes=tuple(x.axes[i] for i in step.arg(1)))


def _transpose(step: Step) -> Value | None:
    x = step.tensor(0)
    if x is None:
        return None
    axes = list(x.axes)
    one, other = step.arg(1, default=0), step.arg(2, default=1)
    axes[one], axes[other] = axes[other], axes[one]
    return Value(made=x.made, axes=tuple(axes))


def _unsqueeze(step: Step) -> Value | None:
    x = step.tensor(0)
    if x is None:
        return None
    at = step.arg(1) % (len(x.axes) + 1)
    return Value(made=x.made, axes=(*x.axes[:at], None, *x.axes[at:]))


def _expand(step: Step) -> Value | None:
    """Axes along which all elements are the same."""
    x = step.tensor(0)
    if x is None:
        return None
    missing = len(step.node.shape) - len(x.axes)
    axes: list[Axis | None] = [*(None for _ in range(missing)), *x.axes]
    for place, size in enumerate(step.node.shape):
        if step.size(axes[place]) != size:
            if axes[place] is not None:
                return None
            axes[place] = step.new(size, "expanded")
    return Value(made=x.made, axes=tuple(axes))


def _reshape(step: Step) -> Value | None:
    """Axes that stay, one taken apart in two or more, or several taken together."""
    x = step.tensor(0)
    if x is None:
        return None
    made, axes = step.whole(x)
    groups = grouped_shapes([step.size(axis) for axis in axes], step.node.shape)
    if groups is None:
        return None
    out: list[Axis | None] = []
    for number, (old, new) in enumerate(groups):
        run = tuple(axes[i] for i in old)
        found = _group(step, made, run, [step.node.shape[j] for j in new], str(number))
        if found is None:
            return None
        made, parts = found
        out.extend(parts)
    return Value(made=made, axes=tuple(out))


def _group(
    step: Step, made: Made, run: tuple[Axis, ...], sizes: list[int], suffix: str
) -> tuple[Made, list[Axis | None]] | None:
    """A run of axes as others with the same elements."""
    if len(run) == len(sizes) == 1:
        return made, list(run)
    if not run and all(size == 1 for size in sizes):
        return made, [None] * len(sizes)
    if len(run) == 1:
        return _apart(step, made, run[0], sizes, suffix)
    if len(sizes) == 1:
        return _together(step, made, run, suffix)
    return None


def _apart(step: Step, made: Made, axis: Axis, sizes: list[int], suffix: str) -> tuple[Made, list[Axis | None]] | None:
    """One axis as several, the last one first."""
    parts: list[Axis | None] = []
    for number, size in enumerate(reversed(sizes[1:])):
        outer = step.new(step.size(axis) // size, "group")
        inner = step.new(size, "in_group")
        axes = tuple(part for each in made.axes for part in ((outer, inner) if step.is_same(each, axis) else (each,)))
        made = step.draft.op(step.node, "view", [made], axes, suffix=f"_{suffix}{number}")
        parts.insert(0, inner)
        axis = outer
    return made, [axis, *parts]


def _together(step: Step, made: Made, run: tuple[Axis, ...], suffix: str) -> tuple[Made, list[Axis | None]] | None:
    """Several axes as one, the first two first."""
    outer = run[0]
    for number, inner in enumerate(run[1:]):
        new = step.new(step.size(outer) * step.size(inner), "joined")
        kept = [each for each in made.axes if not step.is_same(each, inner)]
        axes = tuple(new if step.is_same(each, outer) else each for each in kept)
        made = step.draft.op(step.node, "flatten", [made], axes, suffix=f"_{suffix}{number}", apart=(outer, inner))
        outer = new
    return made, [outer]


def _getitem(step: Step) -> Value | None:
    """One of the pieces of a tensor along an axis, which all operators of this kind share."""
    source = step.source()
    if source is None or source.target.split(".")[1:2] not in (["chunk"], ["split"], ["split_with_sizes"]):
        return None
    whole = step.of(source)
    x, dim = whole.tensor(0), whole.arg(2, "dim", 0)
    if x is None or not x.plain or x.axes[dim] is None:
        return None
    made, axes = step.whole(x)
    pieces = step.draft.pieces.get(source.name)
    if pieces is None:
        sizes = _sizes(source.target.split(".")[1], whole.arg(1), step.size(axes[dim]))
        pieces = tuple(step.new(size, f"{source.name}_{number}") for number, size in enumerate(sizes))
        step.draft.pieces[source.name] = pieces
    index = step.arg(1)
    piece = pieces[index]
    own = tuple(piece if axis == axes[dim] else axis for axis in made.axes)
    after = tuple(AxisName(each) for each in pieces[:index])
    part = step.draft.op(step.node, "segment", [made], own, apart=[axes[dim]], after=after)
    return Value(made=part, axes=tuple(piece if axis == axes[dim] else axis for axis in axes))


def _sizes(function: str, how: Any, size: int) -> list[int]:
    """Extents of the pieces of an axis: so many, or of such a size, or as listed."""
    if isinstance(how, list):
        return [int(each) for each in how]
    each = -(-size // how) if function == "chunk" else how
    return [min(each, size - start) for start in range(0, size, each)]


def _slice(step: Step) -> Value | None:
    """A slice that is the whole."""
    x, dim, start, end = step.tensor(0), step.arg(1, "dim", 0), step.arg(2, "start", 0), step.arg(3, "end", None)
    if x is None:
        return None
    size = step.size(x.axes[dim])
    if start in (0, None) and (end is None or end >= size):
        return x
    return None


HANDLERS: Mapping[str, Callable[[Step], Value | None]] = {
    **dict.fromkeys(("contiguous", "clone", "alias", "detach", "dropout", "to", "_to_copy", "lift_fresh_copy"), _same),
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "flatten", "unflatten"), _reshape),
    "permute": _permute,
    "transpose": _transpose,
    "t": _transpose,
    "unsqueeze": _unsqueeze,
    "expand": _expand,
    "slice": _slice,
    "getitem": _getitem,
}
