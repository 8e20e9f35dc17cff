"""Attention of one layer: latent attention to entries that its own indexer has chosen, or that of a layer before."""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.common import mla
from rooflang.models.common.cache import append, leave
from rooflang.models.common.indexer import selection
from rooflang.models.common.queries import low_rank
from rooflang.models.glm5.scope import Scope

#: Peak rates of scores and values, and of index scores; index keys are stored in FP8 (RoofLang paper, Tables 3 and 4).
ATTENTION_PEAK = "bf16"
INDEX_PEAK = "fp8"
INDEX_DTYPE = "fp8"


def attention(s: Scope, layer: int, x: Tensor, chosen: Tensor | None) -> tuple[Tensor, Tensor]:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added, and the ids that the layer attends
    (rows chosen): those `chosen` before, or else its own indexer's."""
    linear = s.config.formats.of("attention", layer)
    low = low_rank(s, x, linear)
    if chosen is None:
        keys = _keys(s, x, linear)
        chosen = selection(s, x, low, keys, linear=linear, compute=INDEX_PEAK, weights="fp32")
    mixed = mla.attend(
        s, x, low, linear=linear, compute=ATTENTION_PEAK, chosen=chosen, select=min(s.config.index_topk, s.size("ctx"))
    )
    return mla.output(s, mixed, linear), chosen


def _keys(s: Scope, x: Tensor, linear: str) -> Tensor:
    """The index keys of all positions (batch ctx index_dim): a projection and a layer norm of each token."""
    down = s.project("index_k", x, s.weight("index_wk", "hidden index_dim", linear), "index_dim", group="indexer")
    affine = [s.weight(f"index_norm_{part}", "index_dim") for part in ("gain", "bias")]
    dims = f"{s.rows} index_dim"
    new = s.op("index_norm", "layer_norm", [down, *affine], dims, group="indexer", over="index_dim")
    if s.prefill:
        return leave(s, "index", "pool", new, "batch ctx index_dim", INDEX_DTYPE)
    return append(s, "index", new, "batch ctx index_dim", INDEX_DTYPE)
