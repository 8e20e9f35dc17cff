"""The graph of one step: embedding, layers, head."""

from __future__ import annotations

import math

from rooflang.assumptions import Assumptions
from rooflang.errors import ValueRangeError
from rooflang.ir.graph import Graph
from rooflang.ir.tensor import Tensor
from rooflang.models.common.draft import drafted
from rooflang.models.deepseek_v4 import hyper
from rooflang.models.deepseek_v4.attention import attention
from rooflang.models.deepseek_v4.config import DeepseekV4Config
from rooflang.models.deepseek_v4.ends import embedding, head
from rooflang.models.deepseek_v4.ffn import ffn
from rooflang.models.deepseek_v4.scope import Scope, dim_table
from rooflang.models.workload import Workload


def build(name: str, config: DeepseekV4Config, workload: Workload, assumptions: Assumptions) -> Graph:
    """The verified graph of one step.

    Blocks are `embed`, `layers.<n>` and `head`, and `draft` where a decode step drafts tokens. The outputs are the next
    tokens (batch), then those drafted, then what the step leaves behind: in prefill every layer's caches, in decode new
    KV entries where the profile appends none.
    Raises `ValueRangeError` for a prompt that does not fill whole groups of the compressor.
    """
    _check_groups(config, workload)
    s = Scope(f"{name} {workload.stage}", config, workload, assumptions, dim_table(config, workload))
    s.enter("embed")
    tokens = s.tokens()
    stream = embedding(s, tokens)
    for layer, ratio in enumerate(config.ratios):
        s.enter(f"layers.{layer}")
        stream = _layer(s, layer, ratio, stream, tokens)
    s.enter("head")
    found = head(s, stream)
    return s.graph.build(found, *_drafted(s, found, stream), *s.left)


def _drafted(s: Scope, found: Tensor, stream: Tensor) -> tuple[Tensor, ...]:
    """Ids of the tokens that the step drafts; none in a plain step."""
    c = s.config

    def layer(number: int, stream: Tensor, tokens: Tensor) -> Tensor:
        return _layer(s, c.num_hidden_layers + number, c.mtp_ratio(number), stream, tokens)

    return drafted(
        s,
        found,
        stream,
        layers=c.num_nextn_predict_layers,
        layer=layer,
        read=lambda last: hyper.end(s, last),
        tied=c.tie_word_embeddings,
        dtype=c.linear_dtype,
    )


def _check_groups(config: DeepseekV4Config, workload: Workload) -> None:
    """A prompt is compressed by whole groups. In decode the last group of the context may still be filling up."""
    group = math.lcm(*(set(config.ratios) - {0}))
    if workload.stage == "prefill" and workload.context % group:
        below = workload.context // group * group
        raise ValueRangeError(
            f"a prompt of {workload.context:,} tokens does not fill whole groups of {group}",
            where="--context",
            expected=f"a multiple of {group} tokens",
            hint=" or ".join(f"{tokens:,}" for tokens in (below, below + group) if tokens),
        )


def _layer(s: Scope, layer: int, ratio: int, stream: Tensor, tokens: Tensor) -> Tensor:
    """One layer: attention, then experts, each normed before and added to the stream after."""
    x, mix = hyper.read(s, "attn", stream)
    out = attention(s, ratio, s.norm("attn_norm", x, "hidden"))
    stream = hyper.write(s, "attn", stream, mix, out)
    x, mix = hyper.read(s, "ffn", stream)
    out = ffn(s, layer, s.norm("ffn_norm", x, "hidden"), tokens)
    return hyper.write(s, "ffn", stream, mix, out)
