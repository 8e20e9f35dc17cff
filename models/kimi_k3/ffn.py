"""The feed-forward part of one layer: dense, or experts that work on a narrower latent vector."""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.common.experts import Experts, gated_ffn, with_shared
from rooflang.models.kimi_k3.scope import Scope, linear_dtype

#: Vectors that the routed experts take.
LATENT = "moe_latent"


def ffn(s: Scope, layer: int, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    c = s.config
    if layer < c.first_k_dense_replace:
        return gated_ffn(s, "dense", x, "dense_ffn", linear_dtype(s), group="dense ffn")
    experts = Experts(count=c.num_experts, chosen=c.num_experts_per_token, dtype=c.expert_dtype, width=LATENT)
    gates = experts.gates(s, experts.logits(s, x))
    narrow = s.project("latent_down", x, s.weight("latent_down_w", f"hidden {LATENT}"), LATENT, group="latent adapters")
    routed = experts.routed(s, narrow, gates)
    if c.latent_moe_use_norm:
        routed = s.norm("latent_norm", routed, LATENT)
    wide = s.project(
        "latent_up", routed, s.weight("latent_up_w", f"{LATENT} hidden"), "hidden", group="latent adapters"
    )
    return with_shared(s, x, wide, shared=c.num_shared_experts, dtype=linear_dtype(s))
