"""How hard to search."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

from rooflang.eqsat import Limits
from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.search.fix import MAX_AXES

#: `full` searches to the gap; `look` ends with the best plans that a first look at all meshes finds.
Depth = Literal["full", "look"]

#: Mesh axes up to which all meshes can be searched.
MOST_AXES = 3

#: Relative gap at which an extraction is good enough.
GAP = 3e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The `depth` of the search, the most `axes`, the `gap` at which the integer programme stops, the e-`nodes` and
    facts at which a saturation does, the `seed` of the numbers on which plans are evaluated, and the `jobs`: how many
    processes search (0: as many as there are cores, where it pays), which changes no result. Raises `ValueRangeError`,
    `UnknownNameError`."""

    depth: Depth = "full"
    axes: int = MAX_AXES
    gap: float = GAP
    nodes: int = Limits().nodes
    seed: int = 0
    jobs: int = 0

    def __post_init__(self) -> None:
        if self.depth not in get_args(Depth):
            raise UnknownNameError("effort", self.depth, get_args(Depth), where="--effort")
        if not (isinstance(self.axes, Integral) and 1 <= self.axes <= MOST_AXES):
            hint = "a mesh of more axes can be given: --fix mesh=2x2x2x2"
            raise ValueRangeError(f"{self.axes} axes", where="--axes", expected=f"1 to {MOST_AXES}", hint=hint)
        if not (isinstance(self.gap, (int, float)) and 0.0 <= self.gap < 1.0):  # false for NaN, too
            raise ValueRangeError(f"a gap of {self.gap!r}", where="--gap", expected="0 or more, less than 1 (100%)")
        if not (isinstance(self.nodes, Integral) and self.nodes >= 1):
            raise ValueRangeError(f"{self.nodes!r} nodes", where="--node-limit", expected="1 or more")
        if not (isinstance(self.jobs, Integral) and self.jobs >= 0):
            raise ValueRangeError(f"{self.jobs!r} jobs", where="--jobs", expected="1 or more, or 0 for all cores")
        if not (isinstance(self.seed, Integral) and 0 <= self.seed < 2**32):
            expected = "a whole number, 0 or more, less than 2^32"
            raise ValueRangeError(f"seed {self.seed!r}", where="--seed", expected=expected)

    def inputs(self) -> dict[str, Any]:
        """What differs from the defaults, for the hash of a result's inputs."""
        usual = Effort()
        names = {"effort": "depth", "axes": "axes", "gap": "gap", "nodes": "nodes", "seed": "seed"}
        return {
            told: getattr(self, name) for told, name in names.items() if getattr(self, name) != getattr(usual, name)
        }


#: As hard as usual.
EFFORT = Effort()
