"""How hard to search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rooflang.eqsat import Limits
from rooflang.errors import ValueRangeError

#: Relative gap at which an extraction is good enough.
GAP = 3e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The `gap` at which the integer programme stops, the e-`nodes` and facts at which a saturation does, the `seed` of
    the numbers on which plans are evaluated, and the `jobs`: how many processes search (0: as many as there are cores,
    where it pays), which changes no result. Raises `ValueRangeError`."""

    gap: float = GAP
    nodes: int = Limits().nodes
    seed: int = 0
    jobs: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.gap < 1.0:  # false for NaN, too
            raise ValueRangeError(f"a gap of {self.gap}", where="--gap", expected="0 or more, less than 1 (100%)")
        if self.nodes < 1:
            raise ValueRangeError(f"{self.nodes} nodes", where="--node-limit", expected="1 or more")
        if self.jobs < 0:
            raise ValueRangeError(f"{self.jobs} jobs", where="--jobs", expected="1 or more, or 0 for all cores")
        if not 0 <= self.seed < 2**32:
            raise ValueRangeError(f"seed {self.seed}", where="--seed", expected="0 or more, less than 2^32")

    def inputs(self) -> dict[str, Any]:
        """What differs from the defaults, for the hash of a result's inputs."""
        usual = Effort()
        return {
            name: getattr(self, name)
            for name in ("gap", "nodes", "seed")
            if getattr(self, name) != getattr(usual, name)
        }


#: As hard as usual.
EFFORT = Effort()
