"""Both ends of a decoder: token ids to vectors, and the last vector of each request to its next token."""

from __future__ import annotations

import math
from typing import Any

from rooflang.ir.tensor import Role, Tensor
from rooflang.models.common import ends
from rooflang.models.hf.scope import Scope


def embedding(s: Scope) -> Tensor:
    """The step's tokens → their vectors (rows hidden)."""
    x = ends.embedding(s, s.tokens())
    if not s.config.scaled:
        return x
    factor = math.sqrt(s.config.hidden)
    return s.op("scaled", "scale", [x], f"{s.rows} hidden", group="embedding", factor=factor)


def norm(s: Scope, name: str, x: Tensor) -> Tensor:
    """x (rows hidden) normed as this decoder norms."""
    if s.config.norm == "rms":
        return s.norm(name, x, "hidden")
    affine = [s.weight(f"{name}_{part}", "hidden") for part in ("gain", "bias")]
    return s.op(name, "layer_norm", [x, *affine], " ".join(x.dims), group="norms", over="hidden")


def next_token(s: Scope, x: Tensor) -> Tensor:
    """Vectors (tokens hidden) → ids (tokens) of those that follow."""
    c = s.config
    tokens = " ".join(d for d in x.dims if d != "hidden")
    x = norm(s, "norm", x)
    table, own = ("embed.table", "vocab hidden"), ("head.head_w", "hidden vocab", c.formats.head)
    weight = s.shared(*table) if c.tied else s.shared(*own)
    logits = s.op("logits", "matmul", [x, weight], f"{tokens} vocab", group="head")
    if c.head_bias:
        logits = s.op("logits_bias", "bias", [logits, s.weight("head_b", "vocab")], f"{tokens} vocab", group="head")
    if c.logit_cap:
        options: dict[str, Any] = {"function": "soft_cap", "cap": c.logit_cap}
        logits = s.op("logits_cap", "activation", [logits], f"{tokens} vocab", group="head", **options)
    return s.op("token", "argmax", [logits], tokens, "int32", group="head", role=Role.OUTPUT)
