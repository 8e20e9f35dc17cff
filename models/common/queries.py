"""Low-rank queries: what both the attention's and the indexer's query projection start from."""

from __future__ import annotations

from typing import Any

from rooflang.ir.tensor import Tensor
from rooflang.models.common.scope import Scope


def low_rank(s: Scope[Any], x: Tensor, linear: str) -> Tensor:
    """Normed input x (rows hidden) → (rows q_lora), normed; `linear` is the dtype of the projection."""
    down = s.project("q_a", x, s.weight("wq_a", "hidden q_lora", linear), "q_lora", group="projections")
    return s.norm("q_norm", down, "q_lora")
