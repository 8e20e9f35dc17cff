"""Operators of ATen that work along some axes, on each row of the others by itself: concatenations, reductions, scans,
pieces. They are `rowwise`, so that the other axes can be cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflang.importers.axes import Axis
from rooflang.importers.draft import Made, Value
from rooflang.importers.step import Step

#: Where the axes that an operator works along stand among its arguments, under which name, and the default.
_AXES: Mapping[str, tuple[int, str, Any]] = {
    **dict.fromkeys(("cat", "cumsum", "cumprod", "log_softmax", "select", "slice", "gather"), (1, "dim", 0)),
    **dict.fromkeys(("sum", "mean", "amax", "amin", "var", "std", "logsumexp", "prod"), (1, "dim", None)),
    **dict.fromkeys(("argmax", "argmin", "max", "min"), (1, "dim", None)),
    **dict.fromkeys(("narrow", "index_select"), (1, "dim", 0)),
    "flip": (1, "dims", 0),
    "sort": (1, "dim", -1),
    "topk": (2, "dim", -1),
    "roll": (2, "dims", None),
}


def rowwise(step: Step) -> Value | None:
    """The value of an operator of `_AXES`, or of one of its outputs; None for any other, and where it works along all
    axes."""
    source = step.of(step.source() or step.node)
    name = source.node.target.partition(".")[2].partition(".")[0]
    operands = source.tensors()
    if name not in _AXES or not operands or not all(value.plain for value in operands):
        return None
    along = source.arg(*_AXES[name])
    count = len(operands[0].axes)
    touched = {each % count for each in (along if isinstance(along, list) else [along] if along is not None else [])}
    axes = _axes(step, operands[0], touched)
    if axes is None:
        return None
    made = [_aligned(step, value, operands[0], touched, number) for number, value in enumerate(operands)]
    if any(each is None for each in made):
        return None
    kept = tuple(axis for axis in axes if axis is not None)
    gone = [axis for i, axis in enumerate(operands[0].axes) if i in touched and axis is not None]
    out = step.draft.op(step.node, "rowwise", [each for each in made if each], kept, apart=gone, function=name)
    return Value(made=out, axes=axes)


def _axes(step: Step, x: Value, touched: set[int]) -> tuple[Axis | None, ...] | None:
    """Axes of the output: those of the rows as they are, those worked along new, or gone."""
    shape = step.node.shape
    if not touched or len(touched) == len(x.axes):
        return None
    if len(shape) == len(x.axes):
        places = list(range(len(shape)))
    elif len(shape) == len(x.axes) - len(touched):
        places = [i for i in range(len(x.axes)) if i not in touched]
    else:
        return None
    found: list[Axis | None] = []
    for place, size in zip(places, shape, strict=True):
        if place in touched:
            found.append(None if size == 1 else step.new(size, step.node.name))
        elif step.size(x.axes[place]) != size:
            return None
        else:
            found.append(x.axes[place])
    return tuple(found)


def _aligned(step: Step, value: Value, first: Value, touched: set[int], number: int) -> Made | None:
    """An operand with the axes of its rows made those of the first one; those worked along stay its own."""
    if len(value.axes) != len(first.axes):  # indices, of which every row reads all
        shared = any(
            own is not None and want is not None and step.is_same(own, want)
            for own in value.axes
            for want in first.axes
        )
        return None if shared else value.made
    pairs = [
        (own, want)
        for i, (own, want) in enumerate(zip(value.axes, first.axes))
        if i not in touched and own is not None and want is not None
    ]
    if any(step.size(own) != step.size(want) for own, want in pairs):
        return None
    return step.alike(value.made, tuple(own for own, _ in pairs), tuple(want for _, want in pairs), f"in{number}_")
