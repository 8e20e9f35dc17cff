"""The attention of one layer, by its kind."""

from __future__ import annotations

from rooflang.ir.tensor import Tensor
from rooflang.models.hf.attention.delta import delta
from rooflang.models.hf.attention.grouped import grouped
from rooflang.models.hf.attention.latent import latent
from rooflang.models.hf.attention.lightning import lightning
from rooflang.models.hf.records import Attention, Delta, Grouped, Latent, Lightning
from rooflang.models.hf.scope import Scope


def attend(s: Scope, layer: int, attention: Attention, x: Tensor) -> Tensor:
    """Normed input x (rows hidden) → output (rows hidden), the residual not added."""
    match attention:
        case Grouped():
            return grouped(s, layer, attention, x)
        case Latent():
            return latent(s, layer, attention, x)
        case Delta():
            return delta(s, layer, attention, x)
        case Lightning():
            return lightning(s, layer, attention, x)
