"""How many configurations a second: distinct mesh, number of pipeline stages and batch size, extracted and simulated.

    python benchmarks/throughput.py                                  # V4 Pro, decode-64K, 64 GB300
    python benchmarks/throughput.py --model kimi-k3 --batches 200

The whole process counts, from the model's name to the last step time: building the graph, saturation, pricing,
extraction, simulation in closed form (`rooflang/sim/serial.py`; what that does not cover is run by the engine).
Configurations that are impossible or do not fit are looked at and not counted. With `--compare`, what the plans of
this first look take longer than those that a search ends with, over the points of its frontier.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence

import numpy as np

from rooflang.search.api import optimize
from rooflang.search.looks import Looked
from rooflang.search.part import Way
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.search.sizes import pipeline_degrees
from rooflang.search.workers import Workers
from rooflang.units import parse_count


def spread(largest: int, count: int) -> tuple[int, ...]:
    """So many batch sizes up to the largest, about equally far apart by ratio: of as few binary digits as there are
    enough of, so that they divide."""
    for digits in range(1, largest.bit_length() + 1):
        sizes = [size for size in range(1, largest + 1) if size % 2 ** max(0, size.bit_length() - digits) == 0]
        if len(sizes) >= count:
            return tuple(sizes[round(at)] for at in np.linspace(0, len(sizes) - 1, count))
    raise SystemExit(f"there are no {count} batch sizes up to {largest}")


def look(problem: Problem, batches: Sequence[int], jobs: int) -> list[Looked]:
    """Every configuration that fits, with its step time."""
    way = Way(problem=problem, batches=tuple(batches), overlap="perfect")
    with Workers(way, jobs) as workers:
        opened = workers.open(pipeline_degrees(problem, None), Progress(), every=True)
        return [one for each in opened for one in each.looked]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="deepseek-v4-pro")
    parser.add_argument("--hardware", default="gb300")
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--stage", default="decode")
    parser.add_argument("--context", default="64k")
    parser.add_argument("--batches", type=int, default=400, help="how many batch sizes, 0: the powers of two")
    parser.add_argument("--largest", default="64k", help="the largest batch size")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compare", action="store_true", help="with the plans that a search ends with")
    args = parser.parse_args()
    began, cpu = time.perf_counter(), time.process_time()
    task = {"hardware": args.hardware, "gpus": args.gpus, "stage": args.stage, "context": parse_count(args.context)}
    problem = Problem.of(args.model, **task)
    largest = parse_count(args.largest)
    batches = spread(largest, args.batches) if args.batches else tuple(2**k for k in range(largest.bit_length()))
    found = look(problem, batches, args.jobs)
    wall_s = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = time.process_time() - cpu + used.ru_utime + used.ru_stime
    distinct = {(one.mesh, one.stages, batches[one.at]) for one in found}
    meshes = {(one.mesh, one.stages) for one in found}
    print(f"{args.model}, {args.stage}, {args.context}, {args.gpus} {args.hardware}, {args.jobs} processes")
    print(f"{len(distinct)} configurations: {len(meshes)} meshes with pipelines, {len(batches)} batch sizes")
    rates = f"{len(distinct) / wall_s:.0f} configurations/s, {len(distinct) / cpu_s:.0f} a CPU-s"
    print(f"{wall_s:.1f} s, {cpu_s:.1f} CPU-s: {rates}")
    if args.compare:
        best = optimize(args.model, **task, batch=[2**k for k in range(largest.bit_length())])
        step_s = {(p.batch, p.pp): p.sim.step_s for p in best.frontier}
        least: dict[tuple[int, int], float] = {}
        for one in found:
            key = (batches[one.at], one.stages)
            least[key] = min(one.step_s, least.get(key, np.inf))
        ratios = [least[key] / seconds for key, seconds in step_s.items() if key in least]
        print(f"{len(ratios)} points of the frontier: mean {np.mean(ratios):.3f}, most {max(ratios):.3f} of their step")


if __name__ == "__main__":
    main()
