"""What a simulated point depends on, and the hash of it."""

from __future__ import annotations

from typing import Any

from rooflang import __version__
from rooflang.hw import Cluster
from rooflang.search.inputs import digest
from rooflang.search.point import Point


def point_inputs(
    point: Point, cluster: Cluster, *, model: str, stage: str, context: int, dp: int, cp: int, assumptions: str
) -> dict[str, Any]:
    """The inputs of a grid point, named as those of a search are; `hash` changes with any of their numbers."""
    inputs: dict[str, Any] = {
        "model": model,
        "graph": point.certificate["graph"],
        "hardware": cluster.platform.name,
        "cluster": cluster.fingerprint(),
        "gpus": cluster.gpus,
        "stage": stage,
        "context": context,
        "batch": point.batch,
        "dp": dp,
        "cp": cp,
        "pp": point.pp,
        "pp_partition": list(point.pp_partition),
        "overlap": point.sim.overlap,
        "assumptions": assumptions,
        "version": __version__,
    }
    inputs["hash"] = digest(inputs)
    return inputs
