"""The scope of a GLM-5 builder, and the one table of dims."""

from __future__ import annotations

from typing import TypeAlias

from rooflang.ir.tensor import Dim
from rooflang.models.common import experts, mla, scope
from rooflang.models.glm5.config import Glm5Config
from rooflang.models.workload import Workload

Scope: TypeAlias = scope.Scope[Glm5Config]


def dim_table(config: Glm5Config, workload: Workload) -> dict[str, Dim]:
    """Every dim that a GLM-5 graph can have, by label. The words are those that plans show to people."""
    c = config
    own = (
        Dim(label="hidden", size=c.hidden_size),
        Dim(label="vocab", size=c.vocab_size, meaning="vocabulary"),
        Dim(label="index_head", size=c.index_n_heads, meaning="index head"),
        Dim(label="index_dim", size=c.index_head_dim, meaning="index width"),
        Dim(label="chosen", size=min(c.index_topk, workload.context), meaning="chosen entries"),
        *experts.dims(
            experts=c.n_routed_experts,
            width=c.moe_intermediate_size,
            shared=c.n_shared_experts,
            dense=c.intermediate_size,
        ),
    )
    return {d.label: d for d in (*mla.dims(c, workload), *own)}
