"""What a simulated point depends on, and the hash of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflang.search.inputs import hashed_inputs
from rooflang.search.point import Point
from rooflang.search.problem import Problem


def point_inputs(point: Point, problem: Problem, *, layout: Mapping[str, Any], overlap: str) -> dict[str, Any]:
    """The inputs of a point, named as those of a search are; `hash` changes with any of their numbers. `layout` says
    how it is laid out: `dp` and `cp`, or the digest of a `certificate`."""
    return hashed_inputs(
        problem,
        batch=point.batch,
        **layout,
        pp=point.pp,
        pp_partition=list(point.pp_partition),
        overlap=overlap,
    )
