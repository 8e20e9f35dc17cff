"""Lightning attention (MiniMax-01, arXiv 2501.08313, section 2.2): queries, keys and values after a silu, linear
attention with a fixed decay per head, a norm over all heads, and an output gate."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import DTYPES, Role, Tensor
from rooflang.models.common.cache import leave
from rooflang.models.hf.records import Lightning
from rooflang.models.hf.scope import Scope

#: The state accumulates in FP32, and is stored so.
STATE_DTYPE = "fp32"

_KEYS, _VALUES, _WIDE = "linear_head linear_key", "linear_head linear_value", "linear_wide"


def lightning(s: Scope, layer: int, a: Lightning, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    linear = s.config.formats.of("attention", layer)
    q, k, v = (_activated(s, name, x, out, linear) for name, out in (("q", _KEYS), ("k", _KEYS), ("v", _VALUES)))
    mixed = _recurrence(s, a, q, (k, v, s.weight("slopes", "linear_head", "fp32")))
    flat = s.op("all_heads", "flatten", [mixed], f"{s.rows} {_WIDE}", group="norms")
    normed = s.norm("out_norm", flat, _WIDE)
    gate = s.project("gate", x, s.weight("wgate", f"hidden {_WIDE}", linear), _WIDE, group="projections")
    gated = s.op("gated", "sigmoid_mul", [normed, gate], f"{s.rows} {_WIDE}", group="attention")
    return s.project("o", gated, s.weight("wo", f"{_WIDE} hidden", linear), "hidden", group="projections")


def _activated(s: Scope, name: str, x: Tensor, out: str, linear: str) -> Tensor:
    made = s.project(name, x, s.weight(f"w{name}", f"hidden {out}", linear), out, group="projections")
    return s.op(f"{name}_act", "activation", [made], " ".join(made.dims), group="attention", function="silu")


def _recurrence(s: Scope, a: Lightning, q: Tensor, rows: tuple[Tensor, ...]) -> Tensor:
    """Outputs (rows linear_head linear_value), the state kept; `rows` are k, v and the slopes of the decay."""
    state, out = "batch linear_head linear_key linear_value", f"{s.rows} {_VALUES}"
    attrs: dict[str, Any] = {"compute": "bf16"}
    if not s.prefill:
        before = s.state("state", state, STATE_DTYPE)
        options: dict[str, Any] = {"group": "state", "role": Role.STATE, **attrs}
        now = s.op("linear_update", "linear_update", [*rows, before], state, STATE_DTYPE, **options)
        return s.op("linear", "linear_read", [q, now], out, group="attention", fused=True, **attrs)
    attrs["map_bytes"] = a.head_dim**2 * DTYPES[STATE_DTYPE].bytes_per_element
    leave(s, "linear_state", "linear_final", rows, state, STATE_DTYPE, fused=True, **attrs)
    return s.op("linear", "linear_scan", [q, *rows], out, group="attention", **attrs)
