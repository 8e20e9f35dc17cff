"""Both ends of the model: token ids to vectors, and the last vector of each request to its next token."""

from __future__ import annotations

from rooflang.ir.tensor import Role, Tensor
from rooflang.models.deepseek_v4 import hyper
from rooflang.models.deepseek_v4.scope import Scope


def embedding(s: Scope, tokens: Tensor) -> Tensor:
    """Ids (rows) → the residual stream."""
    rows = s.op("rows", "embed", [tokens, s.weight("table", "vocab hidden")], f"{s.rows} hidden", group="embedding")
    return hyper.start(s, rows)


def head(s: Scope, stream: Tensor) -> Tensor:
    """The stream → the id of each request's next token (batch). Of a prompt only the last position is needed."""
    if s.prefill:
        dims = " ".join(d for d in stream.dims if d != "seq")
        stream = s.op("last_token", "last_token", [stream], dims, group="head")
    x = s.norm("norm", hyper.end(s, stream), "hidden")
    if s.config.tie_word_embeddings:
        weight = s.graph.weight("embed.table", "vocab hidden")
    else:
        weight = s.weight("head_w", "hidden vocab")
    logits = s.op("logits", "matmul", [x, weight], "batch vocab", group="head")
    return s.op("token", "argmax", [logits], "batch", "int32", group="head", role=Role.OUTPUT)
