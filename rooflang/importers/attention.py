"""Scaled dot-product attention of ATen: (batch heads queries width) and (batch key-value heads positions width)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rooflang.importers.axes import Axis
from rooflang.importers.draft import Made, Value
from rooflang.importers.step import Step


def _attention(step: Step) -> Value | None:
    """`grouped_attention`, where nothing but causality masks. Positions of keys and values, which a prompt has in
    common with its queries, get a name of their own, and so do key-value heads and values."""
    parts = [step.tensor(index) for index in range(3)]
    masked, causal = step.tensor(3, "attn_mask"), bool(step.arg(5, "is_causal", False))
    if masked is not None or any(part is None or len(part.axes) != 4 for part in parts):
        return None
    (q, q_axes), (k, k_axes), (v, v_axes) = (
        _in_order(step, *step.whole(part, f"_{name}"), name) for part, name in zip(parts, "qkv") if part is not None
    )
    batch, heads, queries, width = q_axes
    k = step.alike(k, (k_axes[0], k_axes[3]), (batch, width), "k")
    v = step.alike(v, (v_axes[0],), (batch,), "v")
    k, positions = _own(step, k, k_axes[2], q_axes, "ctx", "k")
    k, shared = _own(step, k, k_axes[1], q_axes, "kv_head", "k")
    value = v_axes[3]
    if step.is_same(value, width):
        v, value = step.draft.renamed(step.node, v, value, "value", "_value")
    v = _under(step, v, v_axes[2], positions, "v_ctx")
    v = _under(step, v, v_axes[1], shared, "v_head")
    attrs: dict[str, Any] = {"causal": True} if causal else {}
    made = step.draft.op(
        step.node,
        "grouped_attention",
        [q, k, v],
        (batch, queries, heads, value),
        apart=(width, positions, shared),
        **attrs,
    )
    return Value(made=made, axes=(batch, heads, queries, value))


def _own(step: Step, made: Made, axis: Axis, others: tuple[Axis, ...], hint: str, suffix: str) -> tuple[Made, Axis]:
    """The tensor with an axis that none of the others is."""
    if any(step.is_same(axis, other) for other in others):
        return step.draft.renamed(step.node, made, axis, hint, f"_{suffix}_{hint}")
    return made, axis


def _under(step: Step, made: Made, axis: Axis, wanted: Axis, suffix: str) -> Made:
    """The tensor with one of its axes made the wanted dim."""
    return step.alike(made, (axis,), (wanted,), suffix)


def _in_order(step: Step, made: Made, axes: tuple[Axis, ...], suffix: str) -> tuple[Made, tuple[Axis, ...]]:
    """The tensor in the order (batch, positions, heads, width), its heads under another name where it was not, and its
    axes in the order of ATen."""
    batch, heads, positions, width = axes
    if [step.draft.axes.find(a) for a in made.axes] == [
        step.draft.axes.find(a) for a in (batch, positions, heads, width)
    ]:
        return made, axes
    new = step.new(step.size(heads), "head")
    wanted = (batch, positions, new, width)
    made = step.draft.op(step.node, "rename", [made], wanted, suffix=f"_{suffix}_order", apart=[heads])
    return made, (batch, new, positions, width)


HANDLERS: Mapping[str, Callable[[Step], Value | None]] = {"scaled_dot_product_attention": _attention}
