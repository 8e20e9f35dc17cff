"""Which numbers of GPUs, batch sizes, pipeline degrees and grid configurations a search looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflang.errors import HardwareError, PlacementError, ValueRangeError
from rooflang.hw import Cluster, Platform, mesh_factorisations
from rooflang.place.grid import layer_labels
from rooflang.search.problem import LARGEST_BATCH, Problem
from rooflang.units import whole

#: Batch sizes that are tried between one and twice that.
_BETWEEN = 7


def clusters(platform: Platform, most: int) -> tuple[Cluster, ...]:
    """The platform with every number of GPUs that it allows, up to `most`. Raises `ValueRangeError` where there is
    none."""
    out = []
    for gpus in range(1, most + 1):
        try:
            out.append(Cluster.of(platform, gpus))
        except HardwareError:
            continue
    if not out:
        raise ValueRangeError(f"no cluster of {platform.name} has at most {most} GPUs", where="--max-gpus")
    return tuple(out)


def batch_sizes(problem: Problem, asked: Sequence[int] | None) -> tuple[int, ...]:
    """The batch sizes asked for, or 1, 2, 4, … far beyond what fits; 1 for a graph without a batch dim. Raises
    `ValueRangeError`."""
    if asked:
        return tuple(sorted({problem.check_batch(batch) for batch in asked}))
    return tuple(2**k for k in range(LARGEST_BATCH.bit_length())) if problem.has_batch else (1,)


def between(batch: int) -> tuple[int, ...]:
    """Batch sizes between one and twice that, evenly spaced."""
    steps = _BETWEEN + 1
    return tuple(sorted({batch + batch * step // steps for step in range(1, steps)} - {batch}))


def pipeline_degrees(problem: Problem, asked: int | None) -> tuple[int, ...]:
    """The degree asked for, or every one that divides the GPUs, has a layer for each stage and whose stages lie well
    on the domains."""
    layers, gpus = len(layer_labels(problem.blocks)), problem.cluster.gpus
    if asked is not None:
        if whole(asked, where="--pp", least=None) < 1 or gpus % asked or asked > layers:
            raise ValueRangeError(
                f"{asked} pipeline stages on {gpus} GPUs for {layers} layers",
                where="--pp",
                expected=f"a divisor of {gpus}, at most {layers}",
            )
        return (asked,)
    return tuple(pp for pp in range(1, min(gpus, layers) + 1) if gpus % pp == 0 and _lies(problem, pp))


def _lies(problem: Problem, pp: int) -> bool:
    try:
        return bool(mesh_factorisations(problem.cluster, pp, 1))
    except PlacementError:
        return False


def grid_shapes(problem: Problem, degrees: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(dp, cp, pp) of the paper's grid: EP = DP × CP divides the experts, CP divides the context and every cache. A
    graph without a context has nothing for CP to divide."""
    sizes = problem.graph.sizes
    contexts = [size for label, size in sizes.items() if label == "seq" or label == "window" or label.startswith("ctx")]
    for pp in degrees:
        ranks = problem.cluster.gpus // pp
        if sizes.get("expert", ranks) % ranks:
            continue
        for cp in range(1, ranks + 1):
            if ranks % cp == 0 and all(size % cp == 0 for size in contexts or [1]):
                yield ranks // cp, cp, pp
