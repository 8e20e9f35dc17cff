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
    return last_of(s, x, "seq", name, **attrs) if s.prefill else x


def last_of(s: Scope[Any], x: Tensor, positions: str, name: str = "last_token", **attrs: Any) -> Tensor:
    """The last of these positions of x."""
    dims = " ".join(d for d in x.dims if d != positions)
    return s.op(name, "last_token", [x], dims, x.dtype, group="head", **attrs)


def next_token(s: Scope[Any], x: Tensor, *, tied: bool) -> Tensor:
    """Vectors (tokens hidden) → ids (tokens) of those that follow. A `tied` head reads the embedding table."""
    tokens = " ".join(d for d in x.dims if d != "hidden")
    x = s.norm("norm", x, "hidden")
    weight = s.shared("embed.table", "vocab hidden") if tied else s.shared("head.head_w", "hidden vocab")
    logits = s.op("logits", "matmul", [x, weight], f"{tokens} vocab", group="head")
    return s.op("token", "argmax", [logits], tokens, "int32", group="head", role=Role.OUTPUT)
