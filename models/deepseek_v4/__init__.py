"""DeepSeek V4: window and compressed attention (CSA, HCA), mixture of experts, hyper-connections."""

from rooflang.models.deepseek_v4.build import build
from rooflang.models.deepseek_v4.config import DeepseekV4Config as Config

__all__ = ["Config", "build"]
