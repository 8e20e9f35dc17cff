"""The indexer of sparse attention: which entries of the context a query attends."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import Tensor
from rooflang.models.common.scope import Scope

#: Share of the entries that a prompt's queries score on average: an entry exists for later tokens only.
CAUSAL = 0.5


def selection(
    s: Scope[Any], x: Tensor, low: Tensor, keys: Tensor, *, linear: str, compute: str, weights: str = "bf16"
) -> Tensor:
    """Ids of the entries to attend (rows chosen): queries from the low-rank query, weights of index heads from x.

    `linear` is the dtype of the query projection, `weights` that of the head weights, `compute` the scores' peak rate.
    """
    up = s.weight("index_wq_b", "q_lora index_head index_dim", linear)
    queries = s.project("index_q", low, up, "index_head index_dim", group="indexer")
    project = s.weight("index_weights_w", "hidden index_head")
    heads = s.project("index_weights", x, project, "index_head", weights, group="indexer")
    attrs: dict[str, Any] = {"causal": CAUSAL} if s.prefill else {}
    return s.op(
        "selection",
        "index_select",
        [queries, heads, keys],
        f"{s.rows} chosen",
        "int32",
        group="indexer",
        compute=compute,
        **attrs,
    )
