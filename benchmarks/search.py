"""E-graph against grid, batch by batch: how much faster, at what gap, by which plan.

    python benchmarks/search.py                     # V4 Pro, decode-64K, 8 B300
    python benchmarks/search.py --hardware gb300 --gpus 64 --context 1m --assumptions paper --overlap none

For every batch size both searches' best throughput per GPU and best interactivity; ratios above 1 mean that the
e-graph's plan is better. Ratios and counts do not depend on the machine; the seconds do.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rooflang.search.api import optimize
from rooflang.search.point import Point, Result
from rooflang.units import parse_count, show_seconds


def best(points: Sequence[Point], batch: int) -> tuple[float, float]:
    """(tok/s/GPU, tok/s/user) of the best points at a batch size; zeros where there is none."""
    mine = [p.sim for p in points if p.batch == batch]
    return max((s.tok_s_gpu for s in mine), default=0.0), max((s.tok_s_user for s in mine), default=0.0)


def report(egraph: Result, grid: Result) -> None:
    """Print one row a batch size, then what each search took."""
    print(f"{'batch':>8} {'tok/s/GPU':>11} {'x grid':>7} {'tok/s/user':>11} {'x grid':>7} {'gap':>8}  plan")
    for batch in sorted({p.batch for p in egraph.points}):
        (gpu, user), (grid_gpu, grid_user) = best(egraph.points, batch), best(grid.points, batch)
        point = max((p for p in egraph.points if p.batch == batch), key=lambda p: p.sim.tok_s_gpu)
        ratios = [f"{a / b:7.3f}" if b else f"{'-':>7}" for a, b in ((gpu, grid_gpu), (user, grid_user))]
        gap = f"{100 * point.gap:7.3f}%" if point.gap is not None else f"{'-':>8}"
        print(f"{batch:>8} {gpu:>11.1f} {ratios[0]} {user:>11.2f} {ratios[1]} {gap}  {point.plan}")
    for name, result in (("e-graph", egraph), ("grid", grid)):
        print(f"{name}: {result.evaluated}, {show_seconds(result.seconds)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="deepseek-v4-pro")
    parser.add_argument("--hardware", default="b300")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--stage", default="decode")
    parser.add_argument("--context", default="64k")
    parser.add_argument("--batch", type=lambda text: [int(b) for b in text.split(",")], default=None)
    parser.add_argument("--pp", type=int, default=None)
    parser.add_argument("--assumptions", default="physical")
    parser.add_argument("--overlap", default="perfect", choices=("perfect", "none", "two-batch"))
    args = parser.parse_args()
    given = {**vars(args), "context": parse_count(args.context)}
    model = given.pop("model")
    report(optimize(model, **given), optimize(model, search="grid", **given))


if __name__ == "__main__":
    main()
