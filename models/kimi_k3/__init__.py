"""Kimi K3: Kimi Delta Attention and latent attention, attention residuals, a latent mixture of experts."""

from rooflang.models.kimi_k3.build import build
from rooflang.models.kimi_k3.config import KimiK3Config as Config

__all__ = ["Config", "build"]
