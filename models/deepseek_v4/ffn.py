"""The feed-forward part of one layer: router, routed experts, shared expert."""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.common.experts import Experts, with_shared
from rooflang.models.deepseek_v4.scope import Scope


def ffn(s: Scope, layer: int, x: Tensor, tokens: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    c = s.config
    experts = Experts(count=c.n_routed_experts, chosen=c.num_experts_per_tok, dtype=c.expert_weight_dtype)
    routed = experts.routed(s, x, _gates(s, layer, experts, x, tokens))
    return with_shared(s, x, routed, shared=c.n_shared_experts, dtype=c.linear_dtype)


def _gates(s: Scope, layer: int, experts: Experts, x: Tensor, tokens: Tensor) -> Tensor:
    """Weights of the chosen experts (rows expert). Hash layers choose by token id, weigh by logits."""
    logits = experts.logits(s, x)
    if s.assumptions.hash_routing and layer < s.config.num_hash_layers:
        return experts.gates(s, logits, "hash_route", tokens, s.weight("token_experts", "vocab route", "int64"))
    return experts.gates(s, logits)
