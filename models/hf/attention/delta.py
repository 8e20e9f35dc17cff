"""The gated delta rule: Gated DeltaNet (arXiv 2412.06464, as Qwen3-Next has it) and Kimi Delta Attention (arXiv
2510.26692): projections, short convolutions, the rule, a norm of its outputs and their gate."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import DTYPES, Role, Tensor
from rooflang.models.common.cache import leave
from rooflang.models.hf.records import Delta
from rooflang.models.hf.scope import Scope

#: Peak rate of the rule, and what ranks that share a sequence exchange of it (flash-linear-attention).
PEAK, MAP_DTYPE = "bf16", "fp32"

_KEYS, _VALUES = "delta_head delta_key", "delta_head delta_value"


def delta(s: Scope, layer: int, a: Delta, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    linear = s.config.formats.of("attention", layer)
    keys = "delta_group delta_key" if a.key_heads < a.heads else _KEYS
    q, k, v = (
        _convolved(s, name, _projected(s, name, x, "hidden", out, linear))
        for name, out in (("q", keys), ("k", keys), ("v", _VALUES))
    )
    if a.key_heads < a.heads:
        q, k = (
            s.op(f"{n}_heads", "repeat", [t], f"{s.rows} {_KEYS}", group="attention") for n, t in (("q", q), ("k", k))
        )
    beta = s.project("beta", x, s.weight("wbeta", "hidden delta_head"), "delta_head", "fp32", group="projections")
    shift = _KEYS if a.decay == "channel" else "delta_head"
    gates = (s.weight("decay_rate", "delta_head", "fp32"), s.weight("decay_shift", shift, "fp32"))
    mixed = _recurrence(s, a, q, (k, v, _decay(s, a, x, linear), beta, *gates))
    mixed = s.norm("out_norm", mixed, "delta_value")
    return s.project(
        "o", _gated(s, a, x, mixed, linear), s.weight("wo", f"{_VALUES} hidden", linear), "hidden", group="projections"
    )


def _projected(s: Scope, name: str, x: Tensor, source: str, out: str, linear: str, dtype: str = "bf16") -> Tensor:
    """x (rows source) → (rows out)."""
    return s.project(name, x, s.weight(f"w{name}", f"{source} {out}", linear), out, dtype, group="projections")


def _decay(s: Scope, a: Delta, x: Tensor, linear: str) -> Tensor:
    """Logits of the decay: one for each head, or for each channel of the keys by way of a narrow vector."""
    if a.decay == "head":
        return s.project("decay", x, s.weight("wdecay", "hidden delta_head"), "delta_head", "fp32", group="projections")
    low = _projected(s, "decay_low", x, "hidden", "decay_rank", linear)
    return _projected(s, "decay", low, "decay_rank", _KEYS, linear)


def _gated(s: Scope, a: Delta, x: Tensor, mixed: Tensor, linear: str) -> Tensor:
    """Outputs by their gate: its silu in Gated DeltaNet, its sigmoid in KDA, there by way of a narrow vector."""
    if a.gate_rank:
        low = _projected(s, "gate_low", x, "hidden", "gate_rank", linear)
        gate = _projected(s, "gate", low, "gate_rank", _VALUES, linear)
        return s.op("gated", "sigmoid_mul", [mixed, gate], " ".join(gate.dims), group="attention")
    gate = _projected(s, "gate", x, "hidden", _VALUES, linear)
    return s.op("gated", "gated_activation", [gate, mixed], " ".join(gate.dims), group="attention")


def _convolved(s: Scope, name: str, x: Tensor) -> Tensor:
    """The short convolution of a projection (rows channels), over the positions of this step and those before."""
    channels = " ".join(x.dims[-2:])
    weight = s.weight(f"{name}_conv_w", f"{channels} tap")
    dims, history = " ".join(x.dims), f"batch tap {channels}"
    if s.prefill:
        leave(s, f"{name}_history", "last_window", x, history, "bf16")
        return s.op(f"{name}_conv", "short_conv", [x, weight], dims, taps=s.size("tap"), group="attention")
    before = s.state(f"{name}_state", history, "bf16")
    now = s.op(f"{name}_history", "conv_push", [x, before], history, group="state", role=Role.STATE)
    return s.op(f"{name}_conv", "conv_step", [now, weight], dims, fused=True, group="attention")


def _recurrence(s: Scope, a: Delta, q: Tensor, rows: tuple[Tensor, ...]) -> Tensor:
    """Outputs of the rule (rows delta_head delta_value), its state kept; `rows` are k, v, decay logits, beta, and the
    weights of the decay."""
    state, out = "batch delta_head delta_key delta_value", f"{s.rows} {_VALUES}"
    attrs: dict[str, Any] = {"compute": PEAK, "gate": "softplus"}
    if not s.prefill:
        before = s.state("state", state, a.state_dtype)
        options: dict[str, Any] = {"group": "state", "role": Role.STATE, **attrs}
        now = s.op("delta_update", "delta_update", [*rows, before], state, a.state_dtype, **options)
        return s.op("delta", "delta_read", [q, now], out, group="attention", compute=PEAK, fused=True)
    width = a.key + a.value
    attrs["map_bytes"] = a.key * width * DTYPES[MAP_DTYPE].bytes_per_element
    leave(s, "delta_state", "delta_final", rows, state, a.state_dtype, fused=True, **attrs)
    return s.op("delta", "delta_scan", [q, *rows], out, group="attention", **attrs)
