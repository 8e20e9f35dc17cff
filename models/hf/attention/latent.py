"""Multi-head latent attention, dense or to entries that an indexer chooses.

A decode step attends the entries as they are, its projections absorbed. A prompt makes keys and values of every head
out of them and attends those, which takes fewer operations; where entries are chosen, it attends them as they are too,
as the reference code of DeepSeek-V3.2 does.
"""

from __future__ import annotations

from rooflang.ir.tensor import DTYPES, Tensor
from rooflang.models.common import mla
from rooflang.models.common.cache import append, leave
from rooflang.models.common.indexer import selection
from rooflang.models.common.queries import low_rank
from rooflang.models.hf.records import Latent
from rooflang.models.hf.scope import Scope

#: Index keys are stored, and scored, in FP8 (DeepSeek-V3.2, its reference inference code).
INDEX_DTYPE = "fp8"


def latent(s: Scope, layer: int, a: Latent, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    linear, cache = s.config.formats.of("attention", layer), s.config.formats.cache
    compute = DTYPES[cache].peak
    low = low_rank(s, x, linear) if a.q_rank else x
    source = "q_lora" if a.q_rank else "hidden"
    q = s.project("q_b", low, s.weight("wq_b", f"{source} head query", linear), "head query", group="projections")
    if a.index is not None:
        chosen = selection(s, x, low, _index_keys(s, x, linear), linear=linear, compute=INDEX_DTYPE, weights="fp32")
        entries, select = mla.entries(s, x, linear, cache), s.size("chosen")
        mixed = mla.absorbed(s, q, entries, linear=linear, compute=compute, chosen=chosen, select=select)
    elif s.prefill:
        mixed = _expanded(s, q, mla.entries(s, x, linear, cache), linear, compute)
    else:
        mixed = mla.absorbed(s, q, mla.entries(s, x, linear, cache), linear=linear, compute=compute)
    return mla.output(s, mixed, linear)


def _expanded(s: Scope, q: Tensor, entries: Tensor, linear: str, compute: str) -> Tensor:
    """Attention of queries (rows head query) to keys and values of every head → (rows head value)."""
    up = s.weight("wkv_b_keys", "key_head nope kv_lora", linear)
    keys = s.op("keys", "expand_latent", [entries, up], "batch ctx key_head query", group="projections")
    up = s.weight("wkv_b_values", "key_head value kv_lora", linear)
    values = s.op("values", "expand_latent", [entries, up], "batch ctx key_head value", group="projections")
    return s.op(
        "attention",
        "grouped_attention",
        [q, keys, values],
        f"{s.rows} head value",
        group="attention",
        compute=compute,
        causal=True,
        value_bytes=s.size("value") * DTYPES["bf16"].bytes_per_element,
    )


def _index_keys(s: Scope, x: Tensor, linear: str) -> Tensor:
    """The index keys of all positions (batch ctx index_dim): a projection and a layer norm of each token."""
    down = s.project("index_k", x, s.weight("index_wk", "hidden index_dim", linear), "index_dim", group="indexer")
    affine = [s.weight(f"index_norm_{part}", "index_dim") for part in ("gain", "bias")]
    new = s.op("index_norm", "layer_norm", [down, *affine], f"{s.rows} index_dim", group="indexer", over="index_dim")
    dims = "batch ctx index_dim"
    return (
        leave(s, "index", "pool", new, dims, INDEX_DTYPE) if s.prefill else append(s, "index", new, dims, INDEX_DTYPE)
    )
