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
    return moe.gated_ffn(s, "dense", x, "dense_ffn", s.config.formats.of("dense", layer), group="dense ffn")


def _experts(s: Scope, layer: int, ffn: Experts, x: Tensor) -> Tensor:
    formats = s.config.formats
    routed = moe.Experts(count=ffn.count, chosen=ffn.chosen, dtype=formats.of("experts", layer))
    out = routed.routed(s, x, routed.gates(s, routed.logits(s, x)))
    return moe.with_shared(s, x, out, shared=ffn.shared, dtype=formats.of("shared", layer))
