"""Multi-head latent attention with the key and value projections absorbed (DeepSeek-V2, arXiv 2405.04434, section 2.1):
all heads attend one cached vector per position.

Labels: `query` is a head's query, of which `nope` elements are not rotated; `latent` is a cached vector, of which
`kv_lora` elements make keys and values and the others are the rotary key; `value` is a head's value.
"""

from __future__ import annotations

from typing import Any, Protocol

from rooflang.ir.tensor import DTYPES, Dim, Role, Tensor
from rooflang.models.common.cache import append, leave
from rooflang.models.common.scope import Scope
from rooflang.models.workload import Workload

#: Entries are stored in FP8 (RoofLang paper, Table 3).
ENTRY_DTYPE = "fp8"


class LatentConfig(Protocol):
    """The fields of a config that decide the shapes of latent attention."""

    @property
    def num_attention_heads(self) -> int: ...
    @property
    def q_lora_rank(self) -> int: ...
    @property
    def kv_lora_rank(self) -> int: ...
    @property
    def qk_nope_head_dim(self) -> int: ...
    @property
    def qk_rope_head_dim(self) -> int: ...
    @property
    def v_head_dim(self) -> int: ...


def dims(config: LatentConfig, workload: Workload) -> tuple[Dim, ...]:
    """The dims of latent attention, those of a decode step or prompt among them."""
    c = config
    return (
        Dim(label="batch", size=workload.batch),
        Dim(label="seq", size=workload.tokens, meaning="sequence"),
        Dim(label="ctx", size=workload.context, meaning="context"),
        Dim(label="head", size=c.num_attention_heads),
        Dim(label="q_lora", size=c.q_lora_rank, meaning="query rank"),
        Dim(label="query", size=c.qk_nope_head_dim + c.qk_rope_head_dim, meaning="query width"),
        Dim(label="nope", size=c.qk_nope_head_dim, meaning="unrotated query width"),
        Dim(label="latent", size=c.kv_lora_rank + c.qk_rope_head_dim, meaning="entry width"),
        Dim(label="kv_lora", size=c.kv_lora_rank, meaning="latent rank"),
        Dim(label="value", size=c.v_head_dim, meaning="value width"),
    )


def attend(
    s: Scope[Any], x: Tensor, low: Tensor, *, linear: str, compute: str, chosen: Tensor | None = None, select: int = 0
) -> Tensor:
    """Normed input x (rows hidden) and its low-rank queries → (rows head value); `compute` is the peak rate of scores.

    With `chosen` (rows chosen), a query attends those entries only, `select` of them.
    """
    up = s.weight("wq_b", "q_lora head query", linear)
    q = s.project("q_b", low, up, "head query", group="projections")
    return absorbed(s, q, entries(s, x, linear), linear=linear, compute=compute, chosen=chosen, select=select)


def absorbed(
    s: Scope[Any],
    q: Tensor,
    entries: Tensor,
    *,
    linear: str,
    compute: str,
    chosen: Tensor | None = None,
    select: int = 0,
) -> Tensor:
    """Attention of queries (rows head query) to entries (batch ctx latent) as they are → (rows head value); see
    `attend`."""
    # One kernel in the paper's profile: absorbed queries and mixed latents make no pass over memory.
    inside = Role.ON_CHIP if s.assumptions.fused_attention else Role.ACTIVATION
    narrow = f"{s.rows} head kv_lora"
    keys = s.weight("wkv_b_keys", "head nope kv_lora", linear)
    narrow_q = s.op("q_absorb", "absorb_query", [q, keys], narrow, group="projections", role=inside)
    attrs: dict[str, Any] = {"select": select} if chosen is not None else {}
    if s.prefill:
        attrs["causal"] = True
    mixed = s.op(
        "attention",
        "latent_attention",
        [narrow_q, q, entries, *([chosen] if chosen is not None else [])],
        narrow,
        group="attention",
        compute=compute,
        role=inside,
        value_bytes=s.size("kv_lora") * DTYPES["bf16"].bytes_per_element,
        **attrs,
    )
    values = s.weight("wkv_b_values", "head kv_lora value", linear)
    return s.project("v_up", mixed, values, "head value", group="projections")


def output(s: Scope[Any], mixed: Tensor, linear: str) -> Tensor:
    """(rows head value) → (rows hidden)."""
    return s.project("o", mixed, s.weight("wo", "head value hidden", linear), "hidden", group="projections")


def entries(s: Scope[Any], x: Tensor, linear: str, dtype: str = ENTRY_DTYPE) -> Tensor:
    """The cache (batch ctx latent) with the entries of these tokens, stored as `dtype`."""
    down = s.project("kv_a", x, s.weight("wkv_a", "hidden latent", linear), "latent", group="projections")
    gain = s.weight("kv_norm_gain", "kv_lora")
    new = s.op("kv_norm", "latent_norm", [down, gain], f"{s.rows} latent", group="norms")
    dims = "batch ctx latent"
    if s.prefill:
        # A position is an entry: pooling the one into the other is its conversion to the dtype of the cache.
        return leave(s, "entries", "pool", new, dims, dtype)
    return append(s, "entries", new, dims, dtype)
