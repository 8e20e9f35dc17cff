"""KV caches: in decode a leaf that the step appends to; what a prompt makes of one has to be left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rooflang.ir.tensor import Role, Tensor
from rooflang.models.common.scope import DRAFT, Scope


def append(s: Scope[Any], name: str, new: Tensor | None, dims: str, dtype: str, *, rate: float = 1.0) -> Tensor:
    """The cache as a decode step leaves it; `rate` is the entries written per token, None for `new` writes nothing.

    Where the profile appends nothing, what would have been appended is an output of the step (the RoofLang paper
    computes the new entry and goes no further).
    """
    leaf = s.cache(f"{name}_cache", dims, dtype)
    cache = s.appended.get(leaf.name, leaf)
    if new is None:
        return cache
    if not s.assumptions.kv_append:
        s.left.append(new)
        return cache
    several: dict[str, Any] = {}
    if DRAFT in new.dims:
        rate = rate * s.size(DRAFT)
        if set(new.dims) - {DRAFT} <= set(dims.split()):  # a token is an entry: none is pooled with others
            several["positions"] = DRAFT
    out = s.op(name, "kv_append", [new, cache], dims, dtype, group="kv cache", role=Role.KV_CACHE, rate=rate, **several)
    s.appended[leaf.name] = out
    return out


def leave(
    s: Scope[Any], name: str, kind: str, made: Tensor | Sequence[Tensor], dims: str, dtype: str, **options: Any
) -> Tensor:
    """A cache or state that an operator of this kind makes of a prompt; options as of `Scope.op`."""
    operands = [made] if isinstance(made, Tensor) else made
    out = s.op(name, kind, operands, dims, dtype, group="kv cache", role=Role.OUTPUT, **options)
    s.left.append(out)
    return out
