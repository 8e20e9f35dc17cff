"""What a search costs against the number of GPUs: everything but the number of meshes is flat.

    python benchmarks/scale.py                    # V4 Pro, decode-64K, 8 to 65,536 GB300

For the squarest mesh of one pipeline stage, in CPU seconds of one core: pricing all its e-nodes at all batch sizes and
a first look at them, the best plan for one batch size in earnest, and its simulation (partition of the ranks into
classes included). Beside it, how many meshes of at most two axes there are for all numbers of stages.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import TypeVar

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="deepseek-v4-pro")
    parser.add_argument("--hardware", default="gb300")
    parser.add_argument("--context", default="64k")
    parser.add_argument(
        "--gpus", type=lambda text: [int(n) for n in text.split(",")], default=[8, 64, 512, 4096, 65536]
    )
    args = parser.parse_args()
    print(f"{'GPUs':>6} {'meshes':>7} {'mesh':>9} {'batch':>7} {'price':>7} {'extract':>8} {'simulate':>9} {'gap':>7}")
    for gpus in args.gpus:
        cluster = Cluster.of(args.hardware, gpus)
        problem = Problem.of(args.model, hardware=cluster, context=parse_count(args.context))
        degrees = pipeline_degrees(problem, None)
        meshes = sum(len(mesh_factorisations(cluster, pp, MAX_AXES)) for pp in degrees)
        sizes = min(mesh_factorisations(cluster, 1, MAX_AXES), key=lambda each: (max(each), each))
        batch = 16 * gpus
        batches = (gpus, 4 * gpus, batch, 64 * gpus)
        way = Way(problem=problem, batches=batches, overlap="perfect", fixed=Fixed(mesh=sizes))
        Part.of(way, 1, Progress())  # saturates
        part, price_s = timed(lambda way=way: Part.of(way, 1, Progress()))
        best, extract_s = timed(lambda part=part: part.best(2, math.inf, Progress()))
        if best.plan is None:
            print(f"{gpus:>6} {meshes:>7}   nothing fits, or the extents do not divide")
            continue
        placed = lower(best.plan, problem.blocks)
        cost = problem.cost(best.plan.mesh, batch)
        sim, simulate_s = timed(lambda placed=placed, cost=cost: simulate(placed, cost, tokens=1))
        mesh, gap = "x".join(map(str, sizes)), 100 * (sim.step_s / best.bound_s - 1)
        row = f"{price_s:5.2f} s {extract_s:6.2f} s {simulate_s:7.2f} s {gap:6.2f}%"
        print(f"{gpus:>6} {meshes:>7} {mesh:>9} {batch:>7} {row}", flush=True)


if __name__ == "__main__":
    main()
