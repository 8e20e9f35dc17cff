"""The graph of one step: embedding, layers, head."""

from __future__ import annotations

from rooflang.assumptions import Assumptions
from rooflang.ir.graph import Graph
from rooflang.models.common import ends
from rooflang.models.kimi_k3.attention import attention
from rooflang.models.kimi_k3.config import KimiK3Config
from rooflang.models.kimi_k3.ffn import ffn
from rooflang.models.kimi_k3.kda import kda
from rooflang.models.kimi_k3.residual import Stream
from rooflang.models.kimi_k3.scope import Scope, dim_table
from rooflang.models.kimi_k3.vision import image_tokens
from rooflang.models.workload import Workload


def build(name: str, config: KimiK3Config, workload: Workload, assumptions: Assumptions) -> Graph:
    """The verified graph of one step.

    Blocks are `embed`, `layers.<n>` and `head`, before them those of the vision encoder (`vision.<n>` are its layers)
    where prompts have images. The outputs are the next tokens (batch), then what the step leaves
    behind: in prefill every layer's cache or state, in decode new KV entries where the profile appends none.
    """
    text = config.text_config
    s = Scope(f"{name} {workload.stage}", text, workload, assumptions, dim_table(text, workload))
    seen = image_tokens(s, config.vision_config) if assumptions.images and config.vision_config else None
    s.enter("embed")
    x = ends.embedding(s, s.tokens())
    if seen is not None:
        x = s.op("images", "fill_in", [x, seen], f"{s.rows} hidden", group="embedding")
    stream = Stream(running=x)
    for layer in range(config.layers):
        s.enter(f"layers.{layer}")
        stream = _layer(s, layer, stream)
    s.enter("head")
    x = stream.last_tokens(s).read(s, "output")
    return s.graph.build(ends.next_token(s, x, tied=text.tie_word_embeddings), *s.left)


def _layer(s: Scope, layer: int, stream: Stream) -> Stream:
    """One layer: attention, then the feed-forward part, each normed before."""
    x = s.norm("attn_norm", stream.read(s, "attn"), "hidden")
    if layer % s.config.attn_res_block_size == 0:
        stream = stream.closed()
    stream = stream.write(s, "attn", attention(s, x) if s.config.latent(layer) else kda(s, x))
    x = s.norm("ffn_norm", stream.read(s, "ffn"), "hidden")
    return stream.write(s, "ffn", ffn(s, layer, x))
