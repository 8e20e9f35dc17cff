"""The KV cache of a layer: its window, its compressed context, and the keys that the indexer scores.

In prefill the caches are made from the prompt and have to be left behind. In decode they are leaves, and the step's own
entries are appended to them if the profile says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rooflang.ir.tensor import Tensor
from rooflang.models.common.cache import append, leave
from rooflang.models.deepseek_v4.scope import Scope, context_label, has_indexer

#: Entries are stored in FP8, index keys in FP4 (RoofLang paper, Table 3).
ENTRY_DTYPE = "fp8"
INDEX_DTYPE = "fp4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """What attention reads: (batch window head_dim), (batch ctx head_dim), (batch ctx index_dim)."""

    window: Tensor
    context: Tensor | None = None
    index: Tensor | None = None


def layer_caches(s: Scope, ratio: int, x: Tensor) -> Caches:
    """The caches of a layer of this compression ratio, whose normed input is x (rows hidden)."""
    window = _window(s, x)
    if ratio == 0:
        return Caches(window=window)
    projected = _compressor(s, "compressor", ratio, x, "head_dim")
    context = _compressed(s, "context", ratio, projected, "head_dim", ENTRY_DTYPE)
    if not has_indexer(ratio):
        return Caches(window=window, context=context)
    if s.assumptions.indexer:
        keys = _compressor(s, "index_compressor", ratio, x, "index_dim")
    else:
        # The paper's declaration has no index compressor; its prefill writes index keys cut from the main cache.
        keys = projected if s.prefill else None
    index = _compressed(s, "index", ratio, keys, "index_dim", INDEX_DTYPE)
    return Caches(window=window, context=context, index=index)


def _window(s: Scope, x: Tensor) -> Tensor:
    """The last tokens, uncompressed: one entry per token, key and value of all heads at once."""
    weight = s.weight("wkv", "hidden head_dim", s.config.linear_dtype)
    kv = s.op("kv", "matmul", [x, weight], f"{s.rows} head_dim", group="projections")
    kv = s.norm("kv_norm", kv, "head_dim")
    dims = "batch window head_dim"
    if s.prefill:
        return leave(s, "window", "last_window", kv, dims, ENTRY_DTYPE)
    return append(s, "window", kv, dims, ENTRY_DTYPE)


def _compressor(s: Scope, name: str, ratio: int, x: Tensor, width: str) -> Tensor | None:
    """Value and gate of each token: `wkv` and `wgate` of the checkpoint in one product. None in a decode without them.

    The published weights are BF16; the paper's prefill holds them in FP32, at the rate of TF32.
    """
    always = s.assumptions.compressor == "always"
    if not (s.prefill or always):
        return None
    label = f"part overlap {width}" if has_indexer(ratio) else f"part {width}"
    weight = s.weight(f"{name}_w", f"hidden {label}", "bf16" if always else "fp32")
    return s.op(name, "matmul", [x, weight], f"{s.rows} {label}", group="compressor")


def _compressed(s: Scope, name: str, ratio: int, projected: Tensor | None, width: str, dtype: str) -> Tensor:
    """A compressed cache: pooled from a prompt, or a leaf to which a decode step appends one entry in `ratio` steps."""
    dims = f"batch {context_label(ratio)} {width}"
    if not s.prefill:
        return append(s, name, projected, dims, dtype, rate=1.0 / ratio)
    assert projected is not None
    # The paper's compressor writes entries directly, so pooling costs their write alone.
    attrs: dict[str, Any] = {"fused": True} if s.assumptions.compressor == "prefill" else {}
    return leave(s, name, "pool", projected, dims, dtype, **attrs)
