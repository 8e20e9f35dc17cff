"""Equality saturation: a block's compute graph becomes an e-graph in which the primitives are rewrite rules.

>>> from rooflang.eqsat import saturate
"""

from rooflang.eqsat.enodes import enodes
from rooflang.eqsat.frozen import (
    Arrival,
    FrozenBlock,
    Hold,
    Iteration,
    Limits,
    SaturationStats,
    StopReason,
)
from rooflang.eqsat.saturate import saturate, saturate_all

__all__ = [
    "Arrival",
    "FrozenBlock",
    "Hold",
    "Iteration",
    "Limits",
    "SaturationStats",
    "StopReason",
    "enodes",
    "saturate",
    "saturate_all",
]
