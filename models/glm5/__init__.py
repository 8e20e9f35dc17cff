"""GLM-5: multi-head latent attention to chosen entries (DSA), dense layers first, then a mixture of experts."""

from rooflang.models.glm5.build import build
from rooflang.models.glm5.config import Glm5Config as Config

__all__ = ["Config", "build"]
