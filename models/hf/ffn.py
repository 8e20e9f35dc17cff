"""The feed-forward part of one layer: dense, or a mixture of experts."""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.common import experts as moe
from rooflang.models.hf.records import Dense, Experts, FeedForward
from rooflang.models.hf.scope import Scope


def feed_forward(s: Scope, layer: int, ffn: FeedForward, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    return _dense(s, layer, ffn, x) if isinstance(ffn, Dense) else _experts(s, layer, ffn, x)


def _dense(s: Scope, layer: int, ffn: Dense, x: Tensor) -> Tensor:
    dtype = s.config.formats.of("dense", layer)
    function = "" if ffn.activation == "silu" else ffn.activation
    return moe.gated_ffn(s, "dense", x, "dense_ffn", dtype, group="dense ffn", function=function)


def _experts(s: Scope, layer: int, ffn: Experts, x: Tensor) -> Tensor:
    routed = moe.Experts(
        count=ffn.count,
        chosen=ffn.chosen,
        dtype=s.config.formats.of("experts", layer),
        function="" if ffn.activation == "silu" else ffn.activation,
        biased=ffn.bias,
        scores="" if ffn.scores == "chosen" else ffn.scores,
    )
    logits = routed.logits(s, x)
    if ffn.router_bias:
        logits = s.op(
            "logits_bias",
            "bias",
            [logits, s.weight("router_b", "expert")],
            " ".join(logits.dims),
            "fp32",
            group="router",
        )
    choice = [s.weight("choice_bias", "expert", "fp32")] if ffn.choice_bias else []
    out = routed.routed(s, x, routed.gates(s, logits, "route", *choice))
    return _with_shared(s, layer, ffn, x, out)


def _with_shared(s: Scope, layer: int, ffn: Experts, x: Tensor, routed: Tensor) -> Tensor:
    """The routed experts' output plus that of the shared expert, which may be weighed by one gate for each token."""
    dtype = s.config.formats.of("shared", layer)
    if not ffn.shared or not ffn.shared_gate:
        return moe.with_shared(s, x, routed, shared=ffn.shared, dtype=dtype)
    own = moe.gated_ffn(s, "shared", x, "shared_ffn", dtype, group="shared expert")
    gate = s.op("shared_gate", "matmul", [x, s.weight("shared_gate_w", "hidden")], s.rows, group="shared expert")
    own = s.op("shared_gated", "sigmoid_mul", [own, gate], " ".join(own.dims), group="shared expert")
    return s.op("experts_sum", "add", [routed, own], f"{s.rows} hidden", group="residual")
