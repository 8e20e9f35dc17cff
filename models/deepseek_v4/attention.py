"""Attention of one layer: low-rank queries, window and compressed context, grouped output projection."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import DTYPES, Tensor
from rooflang.models.deepseek_v4.cache import layer_caches
from rooflang.models.deepseek_v4.scope import Scope, has_indexer

#: Peak rates of scores and values, and of index scores (RoofLang paper, Table 4 and the authors' published programs).
ATTENTION_PEAK = "fp8"
INDEX_PEAK = "fp4"

#: Share of the compressed entries that a prompt's queries see on average: an entry exists for later tokens only. Window
#: and chosen entries are full for all but the first tokens of a prompt, and are counted whole.
CAUSAL = 0.5


def attention(s: Scope, ratio: int, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    linear = s.config.linear_dtype
    down = s.op(
        "q_a", "matmul", [x, s.weight("wq_a", "hidden q_lora", linear)], f"{s.rows} q_lora", group="projections"
    )
    low = s.norm("q_norm", down, "q_lora")
    heads = f"{s.rows} group head head_dim"
    up = s.weight("wq_b", "q_lora group head head_dim", linear)
    q = s.op("q_b", "matmul", [low, up], heads, group="projections")
    mixed = _attend(s, ratio, x, low, q)
    # The reference inference code keeps the first output projection in BF16, whatever the checkpoint holds.
    narrow = s.weight("wo_a", "group head head_dim o_lora", "bf16")
    grouped = s.op("o_a", "matmul", [mixed, narrow], f"{s.rows} group o_lora", group="projections")
    wide = s.weight("wo_b", "group o_lora hidden", linear)
    return s.op("o_b", "matmul", [grouped, wide], f"{s.rows} hidden", group="projections")


def _attend(s: Scope, ratio: int, x: Tensor, low: Tensor, q: Tensor) -> Tensor:
    """Softmax attention of q (rows group head head_dim) over the layer's caches; the same dims."""
    caches = layer_caches(s, ratio, x)
    parts, operands = ["window"], [q, caches.window]
    attrs: dict[str, Any] = {"value_bytes": s.config.head_dim * DTYPES[q.dtype].bytes_per_element}
    if caches.context is not None:
        parts.append("context")
        operands.append(caches.context)
        if s.prefill and not has_indexer(ratio):
            attrs["causal"] = CAUSAL
    if caches.index is not None:
        attrs["select"] = s.config.index_topk
        if s.assumptions.indexer:
            parts.append("selection")
            operands.append(_select(s, x, low, caches.index))
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


def _select(s: Scope, x: Tensor, low: Tensor, keys: Tensor) -> Tensor:
    """Ids of the entries to attend (rows chosen): queries from the low-rank query, weights of index heads from x."""
    up = s.weight("index_wq_b", "q_lora index_head index_dim", s.config.linear_dtype)
    queries = s.op("index_q", "matmul", [low, up], f"{s.rows} index_head index_dim", group="indexer")
    weights = s.op(
        "index_weights",
        "matmul",
        [x, s.weight("index_weights_w", "hidden index_head")],
        f"{s.rows} index_head",
        group="indexer",
    )
    attrs: dict[str, Any] = {"causal": CAUSAL} if s.prefill else {}
    return s.op(
        "selection",
        "index_select",
        [queries, weights, keys],
        f"{s.rows} chosen",
        "int32",
        group="indexer",
        compute=INDEX_PEAK,
        **attrs,
    )
