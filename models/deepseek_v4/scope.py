"""The scope of a V4 builder, and the one table of dims."""

from __future__ import annotations

from typing import TypeAlias

from rooflang.ir.tensor import Dim
from rooflang.models.common import experts, scope
from rooflang.models.deepseek_v4.config import INDEXED_RATIO, DeepseekV4Config
from rooflang.models.workload import Workload

Scope: TypeAlias = scope.Scope[DeepseekV4Config]


def dim_table(config: DeepseekV4Config, workload: Workload) -> dict[str, Dim]:
    """Every dim that a V4 graph can have, by label. The words are those that plans show to people."""
    c = config
    dims = [
        Dim(label="batch", size=workload.batch),
        Dim(label="seq", size=workload.tokens, meaning="sequence"),
        Dim(label="hidden", size=c.hidden_size),
        Dim(label="vocab", size=c.vocab_size, meaning="vocabulary"),
        Dim(label="q_lora", size=c.q_lora_rank, meaning="query rank"),
        Dim(label="group", size=c.o_groups, meaning="head group"),
        Dim(label="head", size=c.num_attention_heads // c.o_groups, meaning="head in group"),
        Dim(label="head_dim", size=c.head_dim, meaning="head width"),
        Dim(label="o_lora", size=c.o_lora_rank, meaning="output rank"),
        # A prompt shorter than the window fills only a part of it.
        Dim(label="window", size=min(c.sliding_window, workload.context)),
        # The compressor makes a value and a gate per entry; at ratio 4 for each of two overlapping groups of tokens.
        Dim(label="part", size=2, meaning="value and gate"),
        Dim(label="overlap", size=2, meaning="overlapping groups"),
        Dim(label="index_head", size=c.index_n_heads, meaning="index head"),
        Dim(label="index_dim", size=c.index_head_dim, meaning="index width"),
        Dim(label="chosen", size=min(c.index_topk, _entries(workload, INDEXED_RATIO)), meaning="chosen entries"),
        *experts.dims(experts=c.n_routed_experts, width=c.moe_intermediate_size, shared=c.n_shared_experts),
        Dim(label="route", size=c.num_experts_per_tok, meaning="experts per token"),
        Dim(label="copy", size=c.hc_mult, meaning="residual copy"),
        # Coefficients of one hyper-connection: reading, writing back, and mixing each copy into each copy.
        Dim(label="mix", size=(2 + c.hc_mult) * c.hc_mult, meaning="coefficients"),
        Dim(label="head_mix", size=c.hc_mult, meaning="coefficients"),
    ]
    for ratio in set(c.ratios) - {0}:
        dims.append(Dim(label=context_label(ratio), size=_entries(workload, ratio), meaning="context"))
    return {d.label: d for d in dims}


def _entries(workload: Workload, ratio: int) -> int:
    """Compressed entries of a context. The last group of tokens may still be filling up: its entry has a place too."""
    return -(-workload.context // ratio)


def context_label(ratio: int) -> str:
    """Label of the compressed context of that ratio."""
    return f"ctx{ratio}"


def has_indexer(ratio: int) -> bool:
    """True for CSA layers, whose queries attend a choice of the entries."""
    return ratio == INDEXED_RATIO
