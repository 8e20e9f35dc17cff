"""The feed-forward part of one layer: router, routed experts, shared expert."""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.deepseek_v4.scope import Scope


def ffn(s: Scope, layer: int, x: Tensor, tokens: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    routed = _routed(s, _gates(s, layer, x, tokens), x)
    if not s.config.n_shared_experts:
        return routed
    return s.op("experts_sum", "add", [routed, _shared(s, x)], f"{s.rows} hidden", group="residual")


def _gates(s: Scope, layer: int, x: Tensor, tokens: Tensor) -> Tensor:
    """Weights of the chosen experts (rows expert), k of E filled. Hash layers choose by token id, weigh by logits."""
    c = s.config
    dims = f"{s.rows} expert"
    logits = s.op("logits", "matmul", [x, s.weight("router_w", "hidden expert")], dims, "fp32", group="router")
    kind, operands = "route", [logits]
    if s.assumptions.hash_routing and layer < c.num_hash_layers:
        kind, operands = "hash_route", [logits, tokens, s.weight("token_experts", "vocab route", "int64")]
    return s.op("route", kind, operands, dims, "fp32", fill=_fill(s), group="router", top_k=c.num_experts_per_tok)


def _routed(s: Scope, gates: Tensor, x: Tensor) -> Tensor:
    """Rows to their experts, up, gate and down there, and back as a weighted sum (rows hidden)."""
    fill, dtype = _fill(s), s.config.expert_weight_dtype
    wide, narrow = f"{s.rows} expert hidden", f"{s.rows} expert ffn"
    travel = s.assumptions.routed_dtype
    rows = s.op("dispatch", "dispatch", [x, gates], wide, travel, fill=fill, group="dispatch")
    copy = {"fill": fill, "group": "experts", "one_pass": True, "across": "expert"}
    if s.assumptions.expert_copies:
        rows = s.op("expert_gather", "to_hbm", [rows], wide, travel, **copy)
    up = s.weight("experts_w13", "expert hidden gate ffn", dtype)
    inner = s.op("expert_up", "gated_matmul", [rows, up], narrow, fill=fill, group="experts")
    down = s.weight("experts_w2", "expert ffn hidden", dtype)
    out = s.op("expert_down", "matmul", [inner, down], wide, fill=fill, group="experts")
    if s.assumptions.expert_copies:
        out = s.op("expert_scatter", "to_hbm", [out], wide, **copy)
    return s.op("combine", "combine", [out, gates], f"{s.rows} hidden", group="dispatch")


def _shared(s: Scope, x: Tensor) -> Tensor:
    """The expert that every token runs (rows hidden)."""
    dtype = s.config.linear_dtype
    up = s.weight("shared_w13", "hidden gate shared_ffn", dtype)
    inner = s.op("shared_up", "gated_matmul", [x, up], f"{s.rows} shared_ffn", group="shared expert")
    down = s.weight("shared_w2", "shared_ffn hidden", dtype)
    return s.op("shared_down", "matmul", [inner, down], f"{s.rows} hidden", group="shared expert")


def _fill(s: Scope) -> float:
    """Share of (token, expert) pairs that exist."""
    return s.config.num_experts_per_tok / s.config.n_routed_experts
