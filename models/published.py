"""What others have published about the size of models, and whether the counts agree.

A published figure is taken as far as its digits go: counts agree with it where they are within 1% of it, or are it when
cut or rounded to its digits ("37B" is 36.6 and 37.4 alike).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import lru_cache
from pathlib import Path
from typing import Literal

from rooflang.models.counts import Counts

_PUBLISHED = Path(__file__).parent / "published_parameters.toml"

#: Largest relative difference.
TOLERANCE = 0.01

_UNITS = {"M": 6, "B": 9, "T": 12}

#: What a publisher leaves out of a figure.
Without = Literal["", "embedding", "embedding and head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Figures of one model as printed (`30.5B`), "" for none, what each leaves out, and where they stand."""

    model: str
    total: str
    active: str = ""
    total_without: Without = ""
    active_without: Without = ""
    source: str

    def total_of(self, found: Counts) -> float:
        """The count that the published total is to be compared with."""
        return found.parameters - _left_out(found, self.total_without)

    def active_of(self, found: Counts) -> float:
        """The count that the published active parameters are to be compared with."""
        return found.active - _left_out(found, self.active_without)


def _left_out(found: Counts, without: Without) -> float:
    return (found.embedding if without else 0.0) + (found.head if without == "embedding and head" else 0.0)


def agrees(count: float, figure: str) -> bool:
    """Is a count the published figure, as far as its digits go?"""
    digits, exponent = Decimal(figure[:-1]), _UNITS[figure[-1]]
    found = Decimal(count).scaleb(-exponent)
    if abs(found - digits) <= Decimal(TOLERANCE) * digits:
        return True
    return any(found.quantize(digits, rounding=way) == digits for way in (ROUND_DOWN, ROUND_HALF_UP))


@lru_cache(maxsize=1)
def published_parameters() -> tuple[Published, ...]:
    """Figures of all models of which there are some, by name."""
    tables = tomllib.loads(_PUBLISHED.read_text(encoding="utf-8"))
    return tuple(Published(model=name, **figures) for name, figures in sorted(tables.items()))
