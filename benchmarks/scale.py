"""What a search costs against the number of GPUs, where everything but the number of meshes is flat, and of mesh axes.

    python benchmarks/scale.py                              # V4 Pro, decode-64K, 8 to 65,536 GB300
    python benchmarks/scale.py --meshes 64,8x8,4x4x4        # on one to three axes

For the squarest mesh of one pipeline stage, or for given ones, in CPU seconds of one core: saturation, from the disk if
it is there; pricing all e-nodes at all batch sizes and a first look at them; the best plan for one batch size in
earnest; and its simulation (partition of the ranks into classes included). Beside it, how many meshes of at most two
axes there are for all numbers of stages.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import TypeVar

from rooflang.eqsat import saturate_all
from rooflang.hw import Cluster, mesh_factorisations
from rooflang.place.lower import lower
from rooflang.search.fix import MAX_AXES, Fixed
from rooflang.search.part import Part, Way
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import pipeline_degrees
from rooflang.sim.simulate import simulate
from rooflang.units import parse_count

Found = TypeVar("Found")


def timed(work: Callable[[], Found]) -> tuple[Found, float]:
    """The result and its CPU seconds."""
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def squarest(cluster: Cluster) -> tuple[int, ...]:
    """The mesh of all GPUs on at most two axes whose longest axis is the shortest."""
    return min(mesh_factorisations(cluster, 1, MAX_AXES), key=lambda each: (max(each), each))


def report(problem: Problem, sizes: tuple[int, ...]) -> None:
    """Print one row."""
    cluster = problem.cluster
    gpus, batch = cluster.gpus, 16 * cluster.gpus
    meshes = sum(len(mesh_factorisations(cluster, pp, MAX_AXES)) for pp in pipeline_degrees(problem, None))
    way = Way(problem=problem, batches=(gpus, 4 * gpus, batch, 64 * gpus), overlap="perfect", fixed=Fixed(mesh=sizes))
    _, saturate_s = timed(lambda: saturate_all(problem.blocks, len(sizes)))
    part, price_s = timed(lambda: Part.of(way, 1, Progress()))
    best, extract_s = timed(lambda: part.best(2, math.inf, Progress()))
    row = f"{gpus:>6} {meshes:>7} {'x'.join(map(str, sizes)):>9} {batch:>7} {saturate_s:7.2f} s"
    if best.plan is None:
        print(f"{row}   nothing fits, or the extents do not divide")
        return
    placed, cost = lower(best.plan, problem.blocks), problem.cost(best.plan.mesh, batch)
    sim, simulate_s = timed(lambda: simulate(placed, cost, tokens=1))
    gap = 100 * (sim.step_s / best.bound_s - 1)
    row += f" {price_s:5.2f} s {extract_s:6.2f} s {simulate_s:7.2f} s {1e3 * sim.step_s:7.3f} ms {gap:6.2f}%"
    print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="deepseek-v4-pro")
    parser.add_argument("--hardware", default="gb300")
    parser.add_argument("--context", default="64k")
    parser.add_argument(
        "--gpus", type=lambda text: [int(n) for n in text.split(",")], default=[8, 64, 512, 4096, 65536]
    )
    parser.add_argument(
        "--meshes", type=lambda text: [tuple(map(int, mesh.split("x"))) for mesh in text.split(",")], default=[]
    )
    args = parser.parse_args()
    columns = ("saturate", "price", "extract", "simulate", "step", "gap")
    widths = (9, 7, 8, 9, 10, 7)
    print(f"{'GPUs':>6} {'meshes':>7} {'mesh':>9} {'batch':>7} {' '.join(map(str.rjust, columns, widths))}")
    clusters = [Cluster.of(args.hardware, gpus) for gpus in list(map(math.prod, args.meshes)) or args.gpus]
    for cluster, sizes in zip(clusters, args.meshes or map(squarest, clusters)):
        report(Problem.of(args.model, hardware=cluster, context=parse_count(args.context)), sizes)


if __name__ == "__main__":
    main()
