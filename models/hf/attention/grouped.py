"""MHA, GQA and MQA: projections, norms and rotation of queries and keys, a cache of keys and one of values."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import DTYPES, Tensor
from rooflang.models.common.cache import append, leave
from rooflang.models.hf.records import Grouped
from rooflang.models.hf.scope import Scope, cache_label, reach


def grouped(s: Scope, layer: int, a: Grouped, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    dtype = s.config.formats.of("attention", layer)

    def project(name: str, out: str) -> Tensor:
        return s.project(name, x, s.weight(f"w{name}", f"hidden {out}", dtype), out, group="projections")

    q, k, v = project("q", "head head_dim"), project("k", "kv head_dim"), project("v", "kv value")
    keys, values = (_cached(s, a, name, new) for name, new in (("keys", k), ("values", v)))
    attrs: dict[str, Any] = {"value_bytes": a.value_dim * DTYPES["bf16"].bytes_per_element}
    if s.prefill:
        attrs["causal"] = True
        if a.window:
            attrs["window"] = a.window
    mixed = s.op(
        "attention",
        "grouped_attention",
        [q, keys, values],
        f"{s.rows} head value",
        group="attention",
        compute=DTYPES[s.config.formats.cache].peak,
        **attrs,
    )
    return s.project("o", mixed, s.weight("wo", "head value hidden", dtype), "hidden", group="projections")


def _cached(s: Scope, a: Grouped, name: str, new: Tensor) -> Tensor:
    """Keys or values of all positions that attention reads, those of this step among them: in decode the cache, in
    prefill what the prompt makes of it. The cache of a window keeps its positions only."""
    width, dtype = " ".join(new.dims[-2:]), s.config.formats.cache
    kept = f"batch {cache_label(a)} {width}"
    if not s.prefill:
        return append(s, name, new, kept, dtype)
    if not reach(a):
        return leave(s, name, "pool", new, kept, dtype)
    leave(s, f"{name}_window", "last_window", new, kept, dtype)
    return s.op(name, "pool", [new], f"batch ctx {width}", dtype, group="kv cache")
