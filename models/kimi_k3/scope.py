"""The scope of a Kimi K3 builder, and the one table of dims."""

from __future__ import annotations

from typing import TypeAlias

from rooflang.ir.tensor import Dim
from rooflang.models.common import experts, mla, scope
from rooflang.models.kimi_k3.config import KimiLinearConfig
from rooflang.models.workload import Workload

Scope: TypeAlias = scope.Scope[KimiLinearConfig]


def dim_table(config: KimiLinearConfig, workload: Workload) -> dict[str, Dim]:
    """Every dim that a K3 graph can have, by label. The words are those that plans show to people."""
    c, kda = config, config.linear_attn_config
    own = (
        Dim(label="hidden", size=c.hidden_size),
        Dim(label="vocab", size=c.vocab_size, meaning="vocabulary"),
        Dim(label="kda_head", size=kda.num_heads, meaning="head"),
        Dim(label="kda_key", size=kda.head_dim, meaning="key width"),
        Dim(label="kda_value", size=kda.head_dim, meaning="value width"),
        Dim(label="decay_rank", size=kda.head_dim, meaning="decay rank"),
        Dim(label="tap", size=kda.short_conv_kernel_size, meaning="convolution"),
        Dim(label="moe_latent", size=c.routed_expert_hidden_size, meaning="latent width"),
        *experts.dims(
            experts=c.num_experts,
            width=c.moe_intermediate_size,
            shared=c.num_shared_experts,
            dense=c.intermediate_size,
        ),
    )
    return {d.label: d for d in (*mla.dims(c, workload), *own)}


def linear_dtype(s: Scope) -> str:
    """Dtype of the weights of projections, shared experts and dense layers (see `Assumptions.checkpoint_weights`)."""
    return "bf16" if s.assumptions.checkpoint_weights else "fp8_block"
