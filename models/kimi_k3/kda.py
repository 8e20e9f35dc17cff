"""Kimi Delta Attention of one layer: projections, short convolutions, the gated delta rule, norm and output gate.

Its state is that of the rule and the last inputs of the convolutions, `short_conv_kernel_size` of them as in the
authors' kernels (flash-linear-attention). In prefill both are made from the prompt and have to be left behind.
"""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import DTYPES, Role, Tensor
from rooflang.models.common.cache import leave
from rooflang.models.kimi_k3.scope import Scope, linear_dtype

#: The state is stored and the rule computed in BF16 (RoofLang paper, Tables 3 and 4).
STATE_DTYPE = "bf16"
KDA_PEAK = "bf16"

#: What ranks that share a sequence exchange of it is in FP32, as the rule accumulates (flash-linear-attention).
MAP_DTYPE = "fp32"

_KEYS, _VALUES = "kda_head kda_key", "kda_head kda_value"


def kda(s: Scope, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    linear = linear_dtype(s)

    def project(name: str, out: str) -> Tensor:
        return s.project(name, x, s.weight(f"w{name}", f"hidden {out}", linear), out, group="projections")

    q, k, v = (_convolved(s, name, project(name, out)) for name, out in (("q", _KEYS), ("k", _KEYS), ("v", _VALUES)))
    low = project("decay_low", "decay_rank")
    decay = s.project("decay", low, s.weight("wdecay", f"decay_rank {_KEYS}", linear), _KEYS, group="projections")
    beta = s.project("beta", x, s.weight("wbeta", "hidden kda_head"), "kda_head", "fp32", group="projections")
    gates = (s.weight("decay_rate", "kda_head", "fp32"), s.weight("decay_shift", _KEYS, "fp32"))
    mixed = _recurrence(s, q, (k, v, decay, beta, *gates))
    # The paper's programs have a gain per channel of all heads.
    gain = s.weight("out_norm_gain", "kda_value" if s.assumptions.checkpoint_weights else _VALUES)
    mixed = s.op("out_norm", "rms_norm", [mixed, gain], " ".join(mixed.dims), group="norms", over="kda_value")
    gate = project("gate", _VALUES)
    mixed = s.op("gated", "sigmoid_mul", [mixed, gate], " ".join(gate.dims), group="attention")
    return s.project("o", mixed, s.weight("wo", f"{_VALUES} hidden", linear), "hidden", group="projections")


def _convolved(s: Scope, name: str, x: Tensor) -> Tensor:
    """The short convolution of a projection (rows channels), over the positions of this step and those before."""
    channels = " ".join(x.dims[-2:])
    weights = [s.weight(f"{name}_conv_w", f"{channels} tap")]
    if not s.assumptions.checkpoint_weights:
        weights.append(s.weight(f"{name}_conv_bias", channels))
    # One kernel with the rule in the paper's profile: what comes out makes no pass over memory.
    role = Role.ON_CHIP if s.assumptions.fused_attention else Role.ACTIVATION
    dims, history = " ".join(x.dims), f"batch tap {channels}"
    options: dict[str, Any] = {"group": "attention", "role": role}
    if s.prefill:
        leave(s, f"{name}_history", "last_window", x, history, STATE_DTYPE)
        return s.op(f"{name}_conv", "short_conv", [x, *weights], dims, taps=s.size("tap"), **options)
    before = s.state(f"{name}_state", history, STATE_DTYPE)
    now = s.op(f"{name}_history", "conv_push", [x, before], history, STATE_DTYPE, group="state", role=Role.STATE)
    return s.op(f"{name}_conv", "conv_step", [now, *weights], dims, fused=True, **options)


def _recurrence(s: Scope, q: Tensor, rows: tuple[Tensor, ...]) -> Tensor:
    """Outputs of the delta rule (rows kda_head kda_value), its state kept; `rows` are k, v, decay logits, beta, and the
    weights of the decay."""
    state = "batch kda_head kda_key kda_value"
    out = f"{s.rows} {_VALUES}"
    floor: dict[str, Any] = {"floor": s.config.linear_attn_config.gate_lower_bound}
    if not s.prefill:
        before = s.state("state", state, STATE_DTYPE)
        attrs = {"group": "state", "compute": KDA_PEAK, "role": Role.STATE, **floor}
        now = s.op("kda_update", "delta_update", [*rows, before], state, STATE_DTYPE, **attrs)
        return s.op("kda", "delta_read", [q, now], out, group="attention", compute=KDA_PEAK, fused=True)
    width = s.size("kda_key") + s.size("kda_value")
    attrs = {"map_bytes": s.size("kda_key") * width * DTYPES[MAP_DTYPE].bytes_per_element, "compute": KDA_PEAK, **floor}
    leave(s, "kda_state", "delta_final", rows, state, STATE_DTYPE, fused=True, **attrs)
    return s.op("kda", "delta_scan", [q, *rows], out, group="attention", **attrs)
