"""Latent attention of one layer, with its output gate."""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.common import mla
from rooflang.models.common.queries import low_rank
from rooflang.models.kimi_k3.scope import Scope, linear_dtype

#: Peak rate of scores and values (RoofLang paper, Table 4).
ATTENTION_PEAK = "fp8"


def attention(s: Scope, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    linear = linear_dtype(s)
    mixed = mla.attend(s, x, low_rank(s, x, linear), linear=linear, compute=ATTENTION_PEAK)
    if s.config.mla_use_output_gate:
        gate = s.project("gate", x, s.weight("wg", "hidden head value", linear), "head value", group="projections")
        mixed = s.op("gated", "sigmoid_mul", [mixed, gate], " ".join(gate.dims), group="attention")
    return mla.output(s, mixed, linear)
