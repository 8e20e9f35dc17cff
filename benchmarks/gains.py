"""What the e-graph gains over the grid in each overlap mode: mean, most, where.

    python benchmarks/gains.py                           # three models on 8 B300 and 64 GB300: some ten minutes
    python benchmarks/gains.py --models deepseek-v4-pro --settings b300:8:decode:64k --overlaps two-batch
    python benchmarks/gains.py --settings b300:8:prefill:64k --assumptions paper,physical --batches 1,8,64

For every batch size of the grid, or those of them that are asked for, both searches' most tokens a second per GPU and
per user are compared, over all numbers of pipeline stages; a gain of 0% means that the e-graph's best plan is as fast
as the grid's. The e-graph looks, as `rooflang optimize --effort look` does, unless another effort is asked for. Only
the seconds depend on the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rooflang.errors import RooflangError
from rooflang.search.api import optimize
from rooflang.search.point import Point
from rooflang.units import parse_count

MODELS = ("deepseek-v4-flash", "deepseek-v4-pro", "llama-3.1-70b")
SETTINGS = ("b300:8:decode:64k", "gb300:64:decode:64k")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """By how much the best e-graph point of a batch size is ahead of the grid's: per GPU, per user; and its gap."""

    where: str
    gpu: float
    user: float
    gap: float


def best(points: Sequence[Point], batch: int) -> tuple[float, float]:
    """(tok/s/GPU, tok/s/user) of the best points at a batch size."""
    mine = [point.sim for point in points if point.batch == batch]
    return max(sim.tok_s_gpu for sim in mine), max(sim.tok_s_user for sim in mine)


def gains(model: str, setting: str, *, batches: Sequence[int] | None = None, **given: Any) -> list[Gain]:
    """The gains of one model and setting, by batch size: those of the grid, of `batches` if there are any."""
    hardware, gpus, stage, context = setting.split(":")
    task = {"hardware": hardware, "gpus": int(gpus), "stage": stage, "context": parse_count(context), **given}
    effort = task.pop("effort")
    grid = optimize(model, search="grid", batch=batches, **task)
    found = sorted({point.batch for point in grid.points})
    egraph = optimize(model, effort=effort, batch=found, **task)
    out = []
    for batch in found:
        ours, theirs = best(egraph.points, batch), best(grid.points, batch)
        point = max((p for p in egraph.points if p.batch == batch), key=lambda p: p.sim.tok_s_gpu)
        where = f"{model} {setting} batch {batch:,}"
        out.append(Gain(where=where, gpu=ours[0] / theirs[0] - 1, user=ours[1] / theirs[1] - 1, gap=point.gap or 0.0))
    return out


def row(mode: str, name: str, found: Sequence[Gain]) -> str:
    """Mean, most and least of the gains per GPU and per user, the median gap, and where the most per GPU is."""
    columns = [[gain.gpu for gain in found], [gain.user for gain in found]]
    numbers = [f"{value:8.1%}" for each in columns for value in (mean(each), max(each), min(each))]
    gap = sorted(gain.gap for gain in found)[len(found) // 2]
    most = max(found, key=lambda gain: gain.gpu)
    return f"{mode:20}{name:40}{len(found):4}{''.join(numbers)}{gap:8.1%}  {most.where}"


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument(
        "--settings", default=",".join(SETTINGS), help="hardware:gpus:stage:context, with commas between"
    )
    parser.add_argument("--overlaps", default="perfect,none,two-batch")
    parser.add_argument("--assumptions", default="physical")
    parser.add_argument("--batches", help="batch sizes, with commas between; default: all that the grid has")
    parser.add_argument("--effort", default="look", choices=("look", "full"))
    args = parser.parse_args()
    batches = [int(batch) for batch in args.batches.split(",")] if args.batches else None
    print(f"effort {args.effort}")
    heads = "".join(f"{head:>8}" for head in ("GPU", "most", "least", "user", "most", "least", "gap"))
    print(f"{'profile, overlap':20}{'setting':40}{'n':>4}{heads}  most per GPU at")
    for profile, overlap in product(args.assumptions.split(","), args.overlaps.split(",")):
        mode, every = f"{profile} {overlap}", list[Gain]()
        for setting in args.settings.split(","):
            for model in args.models.split(","):
                began = time.perf_counter()
                try:
                    task = {"overlap": overlap, "assumptions": profile, "effort": args.effort, "batches": batches}
                    found = gains(model, setting, **task)
                except RooflangError as error:
                    print(f"{mode:20} {model} {setting}: {error}")
                    continue
                every += found
                print(row(mode, f"{model} {setting}", found), f"({time.perf_counter() - began:.0f} s)", flush=True)
        if every:
            print(row(mode, "all", every), flush=True)


if __name__ == "__main__":
    main()
