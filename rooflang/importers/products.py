"""Matrix products of ATen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rooflang.importers.axes import Axis
from rooflang.importers.draft import Made, Value
from rooflang.importers.step import Step


def _linear(step: Step) -> Value | None:
    """x (… k) by a weight (n k) → (… n), plus a bias (n)."""
    x, weight = step.tensor(0), step.tensor(1)
    if x is None or weight is None:
        return None
    made, axes = step.whole(x)
    n, k = weight.axes
    if n is None or k is None:
        return None
    return _biased(step, _product(step, made, axes[:-1], axes[-1], weight.made, k, n), step.tensor(2, "bias"))


def _product(step: Step, made: Made, rows: tuple[Axis, ...], summed: Axis, weight: Made, k: Axis, n: Axis) -> Value:
    """Rows of a tensor, which it sums over `summed`, by a weight (k n)."""
    left = step.alike(made, (summed,), (k,), "sum")
    return step.op("matmul", [left, weight], (*rows, n), apart=(k,))


def _biased(step: Step, value: Value, bias: Value | None) -> Value:
    if bias is None:
        return value
    axes = tuple(axis for axis in value.axes if axis is not None)
    other = step.alike(bias.made, bias.made.axes, axes[-1:], "bias")
    return step.op("bias", [value.made, other], axes, suffix="_bias")


def _matmul(step: Step) -> Value | None:
    """a (… m k) by b (… k n), or by b (k n), where axes before the last two are the same in both."""
    return _two(step, step.tensor(0), step.tensor(1))


def _two(step: Step, a: Value | None, b: Value | None) -> Value | None:
    if a is None or b is None or len(a.axes) < 2 or len(b.axes) < 2:
        return None
    (left, first), (right, second) = step.whole(a, "_a"), step.whole(b, "_b")
    *batch, m, k = first
    *shared, inner, n = second
    if shared and [step.size(each) for each in shared] != [step.size(each) for each in batch]:
        return None
    if any(step.is_same(each, n) for each in first):  # both have it, and it would be taken for one of the batch
        right, n = step.draft.renamed(step.node, right, n, "out", "_out")
    if shared:
        right = step.alike(right, tuple(shared), tuple(batch), "batch")
    right = step.alike(right, (inner,), (k,), "sum")
    return step.op("matmul", [left, right], (*batch, m, n), apart=(k,))


def _addmm(step: Step) -> Value | None:
    """A bias plus a product, as `linear` is after it has been taken apart."""
    bias, product = step.tensor(0), _two(step, step.tensor(1), step.tensor(2))
    if product is None or bias is None or len(bias.axes) != 1:
        return None
    return _biased(step, product, bias)


HANDLERS: Mapping[str, Callable[[Step], Value | None]] = {
    "linear": _linear,
    "matmul": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "addmm": _addmm,
}
