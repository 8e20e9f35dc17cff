"""Attention of one layer: low-rank queries, window and compressed context, grouped output projection."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import DTYPES, Tensor
from rooflang.models.common.indexer import CAUSAL, selection
from rooflang.models.common.queries import low_rank
from rooflang.models.deepseek_v4.cache import layer_caches
from rooflang.models.deepseek_v4.scope import Scope, has_indexer

#: Peak rates of scores and values, and of index scores (RoofLang paper, Table 4 and the authors' published programs).
ATTENTION_PEAK = "fp8"
INDEX_PEAK = "fp4"


def attention(s: Scope, ratio: int, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    linear = s.config.linear_dtype
    low = low_rank(s, x, linear)
    up = s.weight("wq_b", "q_lora group head head_dim", linear)
    q = s.project("q_b", low, up, "group head head_dim", group="projections")
    mixed = _attend(s, ratio, x, low, q)
    # The reference inference code keeps the first output projection in BF16, whatever the checkpoint holds.
    narrow = s.weight("wo_a", "group head head_dim o_lora", "bf16")
    grouped = s.project("o_a", mixed, narrow, "group o_lora", group="projections")
    wide = s.weight("wo_b", "group o_lora hidden", linear)
    return s.project("o_b", grouped, wide, "hidden", group="projections")


def _attend(s: Scope, ratio: int, x: Tensor, low: Tensor, q: Tensor) -> Tensor:
    """Softmax attention of q (rows group head head_dim) over the layer's caches; the same dims."""
    caches = layer_caches(s, ratio, x)
    parts, operands = ["window"], [q, caches.window]
    attrs: dict[str, Any] = {"value_bytes": s.config.head_dim * DTYPES[q.dtype].bytes_per_element}
    if caches.context is not None:
        parts.append("context")
        operands.append(caches.context)
        if s.prefill and not has_indexer(ratio):
            # Window and chosen entries are full for all but the first tokens of a prompt, and are counted whole.
            attrs["causal"] = CAUSAL
    if caches.index is not None:
        attrs["select"] = s.config.index_topk
        if s.assumptions.indexer:
            parts.append("selection")
            linear = s.config.linear_dtype
            operands.append(selection(s, x, low, caches.index, linear=linear, compute=INDEX_PEAK))
        else:
            parts.append("index")
            operands.append(caches.index)
            attrs["index_heads"] = s.config.index_n_heads
            if s.prefill:
                attrs["index_causal"] = CAUSAL
    return s.op(
        "attention",
        "attention",
        operands,
        " ".join(q.dims),
        group="attention",
        compute=ATTENTION_PEAK,
        parts=tuple(parts),
        **attrs,
    )
