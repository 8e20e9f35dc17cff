"""Both ends of a language model: token ids to vectors, and the last vector of each request to its next token."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import Role, Tensor
from rooflang.models.common.scope import Scope


def embedding(s: Scope[Any], tokens: Tensor) -> Tensor:
    """Ids (rows) → their vectors (rows hidden)."""
    return s.op("rows", "embed", [tokens, s.weight("table", "vocab hidden")], f"{s.rows} hidden", group="embedding")


def last_token(s: Scope[Any], x: Tensor, name: str = "last_token", **attrs: Any) -> Tensor:
    """What the head reads of x: of a prompt only the last position. Attributes are those of the kind `last_token`."""
    if not s.prefill:
        return x
    return s.op(name, "last_token", [x], " ".join(d for d in x.dims if d != "seq"), group="head", **attrs)


def next_token(s: Scope[Any], x: Tensor, *, tied: bool) -> Tensor:
    """Vectors (batch hidden) → ids (batch). A `tied` head reads the embedding table."""
    x = s.norm("norm", x, "hidden")
    weight = s.graph.weight("embed.table", "vocab hidden") if tied else s.weight("head_w", "hidden vocab")
    logits = s.op("logits", "matmul", [x, weight], "batch vocab", group="head")
    return s.op("token", "argmax", [logits], "batch", "int32", group="head", role=Role.OUTPUT)
