"""What operators, transfers and resident tensors cost on one rank: one roofline model for extractors and simulator."""

from rooflang.cost.model import CostModel, peaks_needed
from rooflang.cost.record import Cost

__all__ = ["Cost", "CostModel", "peaks_needed"]
