"""MHA, GQA and MQA: projections, norms and rotation of queries and keys, a cache of keys and one of values."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import DTYPES, Tensor
from rooflang.models.common.cache import append, leave
from rooflang.models.hf.records import Grouped
from rooflang.models.hf.scope import Scope, cache_label, reach


def grouped(s: Scope, layer: int, a: Grouped, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    linear = s.config.formats.of("attention", layer)
    q, k = (_turned(s, a, name, _normed(s, a, name, x, linear)) for name in ("q", "k"))
    v = _projected(s, a, "v", x, "kv value", linear)
    keys, values = (_cached(s, a, name, new) for name, new in (("keys", k), ("values", v)))
    mixed = _attended(s, a, q, keys, values)
    if a.gate:
        gate = s.project("gate", x, s.weight("wg", "hidden head value", linear), "head value", group="projections")
        mixed = s.op("gated", "sigmoid_mul", [mixed, gate], " ".join(gate.dims), group="attention")
    out = s.project("o", mixed, s.weight("wo", "head value hidden", linear), "hidden", group="projections")
    return _biased(s, "o", out, "hidden") if a.out_bias else out


def _projected(s: Scope, a: Grouped, name: str, x: Tensor, labels: str, linear: str) -> Tensor:
    """x by the weight of this name → (rows labels), plus its bias."""
    out = s.project(name, x, s.weight(f"w{name}", f"hidden {labels}", linear), labels, group="projections")
    return _biased(s, name, out, labels) if a.qkv_bias else out


def _biased(s: Scope, name: str, x: Tensor, labels: str) -> Tensor:
    return s.op(f"{name}_bias", "bias", [x, s.weight(f"b{name}", labels)], " ".join(x.dims), group="projections")


def _normed(s: Scope, a: Grouped, name: str, x: Tensor, linear: str) -> Tensor:
    """Queries or keys of x, normed as the layer norms them."""
    heads, wide = ("head", "heads_wide") if name == "q" else ("kv", "kv_wide")
    if a.qk_norm == "all":
        every = s.norm(f"{name}_norm", _projected(s, a, name, x, wide, linear), wide)
        return s.op(f"{name}_heads", "view", [every], f"{s.rows} {heads} head_dim", group="norms")
    out = _projected(s, a, name, x, f"{heads} head_dim", linear)
    if a.qk_norm == "head":
        return s.norm(f"{name}_norm", out, "head_dim")
    if a.qk_norm == "plain":
        return s.op(f"{name}_norm", "rms_norm", [out], " ".join(out.dims), group="norms", over="head_dim")
    return out


def _turned(s: Scope, a: Grouped, name: str, x: Tensor) -> Tensor:
    """x with its rotary elements turned by the position of its token."""
    if not a.rotary:
        return x
    part: dict[str, Any] = {"fraction": a.rotary / a.head_dim} if a.rotary < a.head_dim else {}
    # Tokens that are drafted one by one stand elsewhere than those that are checked before.
    later = s.rows == "batch" and s.assumptions.draft_tokens
    positions = s.graph.input("draft_positions" if later else "positions", s.rows, "int32")
    return s.op(f"{name}_rope", "rope", [x, positions], " ".join(x.dims), group="rope", **part)


def _attended(s: Scope, a: Grouped, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Attention of queries (rows head head_dim) → (rows head value)."""
    attrs: dict[str, Any] = {"value_bytes": a.value_dim * DTYPES["bf16"].bytes_per_element}
    operands = [q, keys, values]
    if a.sinks:
        operands.append(s.weight("sinks", "head"))
        attrs["sinks"] = True
    if a.softcap:
        attrs["soft_cap"] = a.softcap
    if q.dims[1] != "head":  # several queries of a request, which do not see what comes after them
        attrs["causal"] = True
        attrs |= {name: size for name, size in (("window", a.window), ("chunk", a.chunk)) if size}
    return s.op(
        "attention",
        "grouped_attention",
        operands,
        f"{s.rows} head value",
        group="attention",
        compute=DTYPES[s.config.formats.cache].peak,
        **attrs,
    )


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
