"""No plan leaves the optimizer unchecked: its certificate is replayed, and it is evaluated against the unsharded graph.

The evaluation runs one block of every kind (`sample`), on shrunken dims and a shrunken mesh: an axis keeps its cuts but
has two coordinates. What holds there for a layout holds for the real extents, as cuts and collectives do not depend on
them; extents that do not divide are refused by the costs before. It is run twice: over exact numbers
(`rooflang.ir.exact`), where every tensor has to be equal, and over floats, where it may differ by rounding.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rooflang.hw import Cluster
from rooflang.ir.blocks import Blocks
from rooflang.ir.evaluate import random_leaves
from rooflang.ir.lifted import check_layout, cut_labels
from rooflang.ir.shrink import shrunk
from rooflang.place.certificate import certificate, replay
from rooflang.place.plan import Plan
from rooflang.search.sample import Sample

#: Coordinates that each mesh axis keeps when a plan is evaluated.
_SMALL_AXIS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What a plan was checked on: the dims and the mesh of the evaluation, and the seed of its leaves.

    There is one only if everything was equal.
    """

    dims: Mapping[str, int]
    mesh: tuple[int, ...]
    seed: int

    def to_json(self) -> dict[str, Any]:
        """What a certificate says about it, in its field `evaluated`."""
        return {
            "verdict": "equal",
            "arithmetic": ["exact", "float64"],
            "dims": dict(self.dims),
            "mesh": list(self.mesh),
            "seed": self.seed,
        }


#: What was validated in this process, by the script and the seed: a search comes to one plan at many batch sizes.
_KNOWN: dict[tuple[str, int], Validation] = {}


def validate(plan: Plan, blocks: Blocks, cluster: Cluster, *, seed: int = 0) -> Validation:
    """Replay the plan's certificate and evaluate the plan. Raises `PlacementError` that names the first difference."""
    return validated(certificate(plan, blocks), blocks, cluster, seed=seed)


def validated(script: Mapping[str, Any], blocks: Blocks, cluster: Cluster, *, seed: int = 0) -> Validation:
    """Replay a certificate, which has to be that of the plan that it leads to, and evaluate that plan. Raises
    `PlacementError` that names the first difference."""
    plan = replay(script, blocks, cluster)
    key = (json.dumps(script, sort_keys=True), seed)  # it has the fingerprint of the graph in it
    if key not in _KNOWN:
        _KNOWN[key] = evaluated(plan, blocks, seed=seed)
    return _KNOWN[key]


def evaluated(plan: Plan, blocks: Blocks, *, seed: int = 0) -> Validation:
    """Evaluate a plan on shrunken dims, exactly and in floats. Raises `PlacementError` that names the first
    difference."""
    axis_sizes = tuple(min(axis.size, _SMALL_AXIS) for axis in plan.mesh.axes)
    sample = Sample(plan, blocks)
    whole = sample.graph()
    laid = sample.laid(axis_sizes)
    graph = shrunk(whole, axis_sizes, cut_labels(whole, laid))
    for exact in (True, False):
        leaves = random_leaves(graph, seed, exact=exact)
        check_layout(graph, laid, leaves)
    return Validation(dims=graph.sizes, mesh=axis_sizes, seed=seed)
