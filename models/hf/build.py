"""The graph of one step: embedding, layers, head."""

from __future__ import annotations

from rooflang.assumptions import Assumptions
from rooflang.ir.graph import Graph
from rooflang.ir.tensor import Tensor
from rooflang.models.common.draft import drafted
from rooflang.models.common.ends import last_token
from rooflang.models.hf.attention import attend
from rooflang.models.hf.ends import embedding, next_token, norm
from rooflang.models.hf.ffn import feed_forward
from rooflang.models.hf.records import Decoder, Layer
from rooflang.models.hf.scope import Scope, dim_table
from rooflang.models.workload import Workload


def build(name: str, decoder: Decoder, workload: Workload, assumptions: Assumptions) -> Graph:
    """The verified graph of one step.

    Blocks are `embed`, `layers.<n>` and `head`, and `draft` where a decode step drafts tokens. The outputs are the next
    tokens (batch), then those drafted, then what the step leaves behind: in prefill every layer's caches and states, in
    decode new KV entries where the profile appends none.
    """
    s = Scope(f"{name} {workload.stage}", decoder, workload, assumptions, dim_table(decoder, workload))
    s.enter("embed")
    x = embedding(s)
    for number, layer in enumerate(decoder.stack):
        s.enter(f"layers.{number}")
        x = _layer(s, number, layer, x)
    s.enter("head")
    found = next_token(s, last_token(s, x))
    return s.graph.build(found, *_drafted(s, found, x), *s.left)


def _drafted(s: Scope, found: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Ids of the tokens that the step drafts; none in a plain step."""
    c = s.config

    def layer(number: int, x: Tensor, tokens: Tensor) -> Tensor:
        return _layer(s, c.layers + number, c.stack[-1], x)

    layers, plain = c.draft_layers, c.formats.plain
    return drafted(s, found, x, layers=layers, layer=layer, read=lambda last: last, tied=c.tied, dtype=plain)


def _layer(s: Scope, number: int, layer: Layer, x: Tensor) -> Tensor:
    """One layer: attention, then the feed-forward part, each normed before and added to the stream after."""
    x = _added(s, "attn", x, attend(s, number, layer.attention, norm(s, "attn_norm", x)))
    return _added(s, "ffn", x, feed_forward(s, number, layer.ffn, norm(s, "ffn_norm", x)))


def _added(s: Scope, part: str, x: Tensor, out: Tensor) -> Tensor:
    """The stream with what a sub-layer made, normed first where the decoder does so."""
    if s.config.sandwich:
        out = norm(s, f"{part}_post_norm", out)
    return s.op(f"{part}_add", "add", [x, out], f"{s.rows} hidden", group="residual")
