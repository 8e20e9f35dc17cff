"""What the operators of ATen, PyTorch's library, are here. One without a kind is `pointwise`, `rowwise` or `opaque`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rooflang.importers import attention, moves, products
from rooflang.importers.draft import AxisName, Draft, Made, Value
from rooflang.importers.exported import Node
from rooflang.importers.rows import rowwise
from rooflang.importers.step import Step

Handler = Callable[[Step], Value | None]

#: Functions of single elements that are an `activation` here.
_ACTIVATIONS = {"silu": "silu", "gelu": "gelu", "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}

#: Functions of elements that stand at the same place, broadcast over the axes that one of them lacks.
_POINTWISE = frozenset(
    [
        *("sub", "mul", "div", "pow", "rsub", "neg", "exp", "log", "sqrt", "rsqrt", "reciprocal", "abs", "sin", "cos"),
        *("clamp", "clamp_min", "clamp_max", "minimum", "maximum", "where", "masked_fill", "softplus", "erf", "square"),
        *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_not"),
        *("floor", "floor_divide", "remainder", "leaky_relu", "elu", "hardtanh", "hardswish", "mish", "__and__"),
    ]
)


def translate(draft: Draft, node: Node, values: Mapping[str, Value]) -> Value:
    """The value of a node."""
    step = Step(draft=draft, node=node, values=values)
    name = node.target.split(".")[1] if node.target.startswith("aten.") else node.target
    found = None
    if name in _HANDLERS:
        found = _HANDLERS[name](step)
    elif name in _ACTIVATIONS:
        found = _activation(step, _ACTIVATIONS[name])
    elif name in _POINTWISE:
        found = _pointwise(step, name)
    if found is None:
        found = rowwise(step)
    return step.opaque() if found is None else found


def _activation(step: Step, function: str) -> Value | None:
    x = step.tensor(0)
    if x is None:
        return None
    made, axes = step.whole(x)
    return step.op("activation", [made], axes, function=function)


def _pointwise(step: Step, function: str) -> Value | None:
    """Operands laid over each other from their last axes on."""
    operands = step.tensors()
    axes = _broadcast(step, operands)
    if axes is None:
        return None
    made = [_laid_over(step, value, axes, number) for number, value in enumerate(operands)]
    kept = tuple(axis for axis in axes if axis is not None)
    return Value(made=step.draft.op(step.node, "pointwise", made, kept, function=function), axes=axes)


def _laid_over(step: Step, value: Value, axes: tuple[int | None, ...], number: int) -> Made:
    """An operand whose axes are those of the output at the same places; those of size 1 are gone, where it is the same
    all along the axis of the output."""
    pairs = [(own, want) for own, want in zip(value.axes[::-1], axes[::-1]) if own in value.made.axes]
    single = [own for own, want in pairs if want is None or step.size(own) != step.size(want)]
    made = value.made
    if single:
        rest = tuple(axis for axis in made.axes if axis not in single)
        made = step.draft.op(step.node, "rowwise", [made], rest, suffix=f"_squeezed{number}", function="squeeze")
    fitting = [(own, want) for own, want in pairs if own is not None and want is not None and own not in single]
    return step.alike(made, tuple(own for own, _ in fitting), tuple(want for _, want in fitting), f"in{number}_")


def _broadcast(step: Step, operands: list[Value]) -> tuple[int | None, ...] | None:
    """The axes of the output: at each place that of the first operand that has one there; None for one of size 1."""
    shape = step.node.shape
    axes: list[int | None] = []
    for place in range(1, len(shape) + 1):
        here = [value.axes[-place] for value in operands if len(value.axes) >= place]
        fitting = [axis for axis in here if axis is not None and step.size(axis) == shape[-place] > 1]
        if not fitting and shape[-place] != 1:
            return None
        axes.append(fitting[0] if fitting else None)
    roots = [step.draft.axes.find(axis) for axis in axes if axis is not None]
    return tuple(axes[::-1]) if roots and len(set(roots)) == len(roots) else None


def _add(step: Step) -> Value | None:
    """A sum of two tensors alike is an `add`, which summands pass through; any other one is pointwise."""
    operands = step.tensors()
    if len(operands) != 2 or step.arg(2, "alpha", 1) != 1:
        return _pointwise(step, "add")
    if not all(value.plain and len(value.axes) == len(step.node.shape) for value in operands):
        return _pointwise(step, "add")
    (left, axes), (right, others) = (step.whole(value) for value in operands)
    if [step.size(a) for a in axes] != [step.size(a) for a in others]:
        return _pointwise(step, "add")
    return step.op("add", [left, step.alike(right, others, axes, "in")], axes)


def _rms_norm(step: Step) -> Value | None:
    x, gain = step.tensor(0), step.tensor(2, "weight")
    if x is None or len(step.arg(1)) != 1:
        return None
    made, axes = step.whole(x)
    operands = [made]
    if gain is not None:
        if not step.same(axes[-1], gain.made.axes[0]):
            return None
        operands.append(gain.made)
    return step.op("rms_norm", operands, axes, over=AxisName(axes[-1]))


def _layer_norm(step: Step) -> Value | None:
    x, gain, bias = step.tensor(0), step.tensor(2, "weight"), step.tensor(3, "bias")
    if x is None or gain is None or bias is None or len(step.arg(1)) != 1:
        return None
    made, axes = step.whole(x)
    if not all(step.same(axes[-1], each.made.axes[0]) for each in (gain, bias)):
        return None
    return step.op("layer_norm", [made, gain.made, bias.made], axes, over=AxisName(axes[-1]))


def _softmax(step: Step) -> Value | None:
    x = step.tensor(0)
    if x is None:
        return None
    made, axes = step.whole(x)
    return step.op("softmax", [made], axes, over=AxisName(axes[step.arg(1, "dim", -1)]))


def _embedding(step: Step) -> Value | None:
    table, ids = step.tensor(0), step.tensor(1)
    if table is None or ids is None:
        return None
    made, axes = step.whole(ids)
    if set(map(step.draft.axes.find, axes)) & set(map(step.draft.axes.find, table.made.axes)):
        return None
    return step.op("embed", [made, table.made], (*axes, table.made.axes[1]), apart=table.made.axes[:1])


_HANDLERS: Mapping[str, Handler] = {
    "add": _add,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "softmax": _softmax,
    "_softmax": _softmax,
    "embedding": _embedding,
    **products.HANDLERS,
    **attention.HANDLERS,
    **moves.HANDLERS,
}
