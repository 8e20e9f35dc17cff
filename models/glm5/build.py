"""The graph of one step: embedding, layers, head."""

from __future__ import annotations

from rooflang.assumptions import Assumptions
from rooflang.ir.graph import Graph
from rooflang.ir.tensor import Tensor
from rooflang.models.common import ends
from rooflang.models.common.experts import Experts, gated_ffn, with_shared
from rooflang.models.glm5.attention import attention
from rooflang.models.glm5.config import Glm5Config
from rooflang.models.glm5.scope import Scope, dim_table
from rooflang.models.workload import Workload


def build(name: str, config: Glm5Config, workload: Workload, assumptions: Assumptions) -> Graph:
    """The verified graph of one step.

    Blocks are `embed`, `layers.<n>` and `head`. The outputs are the next tokens (batch), then what the step leaves
    behind: in prefill every layer's caches, in decode new KV entries where the profile appends none.
    """
    s = Scope(f"{name} {workload.stage}", config, workload, assumptions, dim_table(config, workload))
    s.enter("embed")
    x = ends.embedding(s, s.tokens())
    chosen: Tensor | None = None
    for layer in range(config.layers):
        s.enter(f"layers.{layer}")
        out, chosen = attention(s, layer, s.norm("attn_norm", x, "hidden"), chosen)
        x = s.op("attn_add", "add", [x, out], f"{s.rows} hidden", group="residual")
        out = _ffn(s, layer, s.norm("ffn_norm", x, "hidden"))
        x = s.op("ffn_add", "add", [x, out], f"{s.rows} hidden", group="residual")
    s.enter("head")
    return s.graph.build(ends.next_token(s, ends.last_token(s, x), tied=config.tie_word_embeddings), *s.left)


def _ffn(s: Scope, layer: int, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    c = s.config
    if layer < c.first_k_dense_replace:
        return gated_ffn(s, "dense", x, "dense_ffn", c.linear_dtype, group="dense ffn")
    experts = Experts(
        count=c.n_routed_experts, chosen=c.num_experts_per_tok, dtype=c.linear_dtype, router_dtype=c.router_dtype
    )
    routed = experts.routed(s, x, experts.gates(s, experts.logits(s, x)))
    return with_shared(s, x, routed, shared=c.n_shared_experts, dtype=c.linear_dtype)
