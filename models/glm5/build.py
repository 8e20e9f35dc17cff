"""The graph of one step: embedding, layers, head."""

from __future__ import annotations

from rooflang.assumptions import Assumptions
from rooflang.ir.graph import Graph
from rooflang.ir.tensor import Tensor
from rooflang.models.common import ends
from rooflang.models.common.draft import drafted
from rooflang.models.common.experts import Experts, gated_ffn, with_shared
from rooflang.models.common.scope import DRAFT
from rooflang.models.glm5.attention import attention
from rooflang.models.glm5.config import Glm5Config
from rooflang.models.glm5.scope import Scope, dim_table
from rooflang.models.workload import Workload


def build(name: str, config: Glm5Config, workload: Workload, assumptions: Assumptions) -> Graph:
    """The verified graph of one step.

    Blocks are `embed`, `layers.<n>` and `head`, and `draft` where a decode step drafts tokens. The outputs are the next
    tokens (batch), then those drafted, then what the step leaves behind: in prefill every layer's caches, in decode new
    KV entries where the profile appends none.
    """
    s = Scope(f"{name} {workload.stage}", config, workload, assumptions, dim_table(config, workload))
    s.enter("embed")
    x = ends.embedding(s, s.tokens())
    chosen: Tensor | None = None
    for layer in range(config.layers):
        s.enter(f"layers.{layer}")
        x, chosen = _layer(s, layer, x, None if config.indexers[layer] == "full" else chosen)
    s.enter("head")
    found = ends.next_token(s, ends.last_token(s, x), tied=config.tie_word_embeddings)
    return s.graph.build(found, *_drafted(s, found, x), *s.left)


def _layer(s: Scope, layer: int, x: Tensor, chosen: Tensor | None) -> tuple[Tensor, Tensor]:
    """One layer: attention, then the feed-forward part, each normed before; and the ids that it attends."""
    out, chosen = attention(s, layer, s.norm("attn_norm", x, "hidden"), chosen)
    x = s.op("attn_add", "add", [x, out], f"{s.rows} hidden", group="residual")
    out = _ffn(s, layer, s.norm("ffn_norm", x, "hidden"))
    return s.op("ffn_add", "add", [x, out], f"{s.rows} hidden", group="residual"), chosen


def _drafted(s: Scope, found: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Ids of the tokens that the step drafts; none in a plain step."""
    c = s.config
    chosen: Tensor | None = None

    def layer(number: int, x: Tensor, tokens: Tensor) -> Tensor:
        nonlocal chosen
        if chosen is not None and DRAFT in chosen.dims:
            chosen = ends.last_of(s, chosen, DRAFT, "last_choice")
        x, ids = _layer(s, c.num_hidden_layers + number, x, chosen)
        chosen = ids if c.index_share_for_mtp_iteration else None
        return x

    return drafted(
        s,
        found,
        x,
        layers=c.num_nextn_predict_layers,
        layer=layer,
        read=lambda last: last,
        tied=c.tie_word_embeddings,
        dtype="bf16",  # `modules_to_not_convert` names `eh_proj`
    )


def _ffn(s: Scope, layer: int, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    c = s.config
    if layer < c.first_k_dense_replace:
        return gated_ffn(s, "dense", x, "dense_ffn", c.formats.of("dense", layer), group="dense ffn")
    experts = Experts(
        count=c.n_routed_experts,
        chosen=c.num_experts_per_tok,
        dtype=c.formats.of("experts", layer),
        router_dtype=c.router_dtype,
    )
    routed = experts.routed(s, x, experts.gates(s, experts.logits(s, x)))
    return with_shared(s, x, routed, shared=c.n_shared_experts, dtype=c.formats.of("shared", layer))
