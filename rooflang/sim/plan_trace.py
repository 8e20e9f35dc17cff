"""The trace of a placed graph: a process for each rank class, a track for each stream, counters of memory and links.

The format is that of `rooflang.sim.trace`, which Perfetto and chrome://tracing open.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.cost.record import Cost
from rooflang.cost.tiers import lane_bytes_per_s
from rooflang.errors import ValueRangeError
from rooflang.place.lower import PlacedGraph
from rooflang.sim.build import Built, Scene, build
from rooflang.sim.cache import TIMELINES
from rooflang.sim.engine import Timeline
from rooflang.sim.explain import bound_of, critical_path
from rooflang.sim.fleet import Override
from rooflang.sim.memory import occupancy
from rooflang.sim.program import CAP_ONE
from rooflang.sim.result import Overlap
from rooflang.sim.trace import Counter, Slice, write_trace


def write_plan_trace(
    path: Path | str,
    placed: PlacedGraph,
    cost: CostModel,
    *,
    overlap: Overlap = "none",
    overrides: Sequence[Override] = (),
    gpus: Sequence[int] | None = None,
) -> None:
    """Simulate one step and write its trace to `path` (`.json`, or `.json.gz` to compress it).

    A process stands for a class of equal ranks and says how many they are; with `gpus` there is one for each of these
    GPUs instead. Slices carry what bounds the operator, its FLOPs and bytes on one rank, and whether it is on the
    critical path of its stage; counters show the bytes alive in HBM and how busy HBM and links are. `perfect` overlap
    is a projection of the run without overlap, which is what the trace shows then.

    Raises `ValueRangeError` for a GPU that the plan does not use. Memory is not checked.
    """
    built = build(placed, cost, overlap=overlap, overrides=overrides)
    timeline = TIMELINES.run(built.program)
    models = Scene.of(placed, cost, overrides=overrides).book.models
    shown = _shown(built, gpus)
    slices = _slices(built, timeline, models, shown)
    write_trace(Path(path), built.program, timeline, slices, counters=_counters(built, timeline, shown))


def _shown(built: Built, gpus: Sequence[int] | None) -> list[tuple[str, int]]:
    """(process, rank class) of everything that the trace shows."""
    ranks = built.ranks
    if gpus is None:
        return [(_class_name(built, c), c) for c in range(len(ranks.stage)) if built.work[c]]
    for gpu in gpus:
        if not 0 <= gpu < len(ranks.class_of):
            raise ValueRangeError(f"GPU {gpu}", where="trace", expected=f"0 to {len(ranks.class_of) - 1}")
    return [(f"gpu {gpu} (stage {ranks.stage[ranks.class_of[gpu]]})", ranks.class_of[gpu]) for gpu in gpus]


def _class_name(built: Built, number: int) -> str:
    ranks = built.ranks
    count = f" (×{ranks.count[number]})"
    alone = len(ranks.of_stage(ranks.stage[number])) == 1
    return f"stage {ranks.stage[number]}{'' if alone else f', gpu {ranks.representative[number]}'}{count}"


# -- slices -----------------------------------------------------------------------------------------------------------


def _slices(
    built: Built, timeline: Timeline, models: Sequence[CostModel], shown: Sequence[tuple[str, int]]
) -> Iterator[Slice]:
    stages = sorted({built.ranks.stage[c] for _, c in shown})
    critical = {step.op for stage in stages for step in critical_path(built, timeline, stage)}
    took = (timeline.end_s - timeline.start_s).tolist()
    for process, c in shown:
        model = models[built.ranks.colour[c]]
        for op, cost in built.work[c]:
            if took[op] > 0:
                args = _args(built, timeline, model, op, cost)
                args["critical"] = op in critical
                yield Slice(op=op, process=process, thread=_thread(built.streams[op]), args=args)


def _thread(stream: Hashable) -> str:
    if isinstance(stream, tuple):
        number, name = stream
        return f"{name} {number}" if number else str(name)
    return f"stream {stream}"


def _args(built: Built, timeline: Timeline, model: CostModel, op: int, cost: Cost) -> dict[str, object]:
    """What a person who clicks on the operator wants to know, in SI units."""
    lifted, device = built.ops[op], model.cluster.device
    args: dict[str, object] = {
        "group": lifted.group,
        "block": lifted.block,
        "bound": bound_of(built, timeline, op),
        "compute_s": cost.compute_s,
        "memory_s": cost.memory_s,
        "hbm_bytes": round(cost.memory_s * device.hbm_bytes_per_s),
    }
    if max(built.waves, default=0):
        args["micro-batch"] = built.waves[op]
    for level, seconds in cost.levels_s.items():
        args[f"{level}_bytes"] = round(seconds * lane_bytes_per_s(model.cluster, level, model.mesh.gpus))
    if cost.levels_s:
        args["latency_s"] = cost.alpha_s
    if lifted.mode is not None:
        args |= {f"{peak}_flop": round(float(flops)) for peak, flops in model.flops(lifted.mode).items()}
        args |= {f"to_hbm({lifted.mode.op.operands[index].name})": f"from {tier}" for index, tier in lifted.tiers}
    elif lifted.transfer is not None:
        args["collective"] = lifted.transfer.collective
    return args


# -- counters ---------------------------------------------------------------------------------------------------------


def _counters(built: Built, timeline: Timeline, shown: Sequence[tuple[str, int]]) -> Iterator[Counter]:
    for process, c in shown:
        seconds, alive = occupancy(built.program, timeline, c)
        resident = float(built.program.memory_resident_bytes[c])
        points = [(0.0, resident), *zip(seconds.tolist(), alive.astype(np.float64).tolist())]
        yield Counter(process=process, name="HBM in use", series="bytes", points=tuple(points))
        for name, resource in _resources(built, c):
            yield Counter(process=process, name=name, series="percent", points=_busy(built, timeline, resource))


def _resources(built: Built, number: int) -> Iterator[tuple[str, int]]:
    """(name, resource) of what a rank of a class can keep busy: its compute, its HBM, the links of each lane."""
    classes = len(built.ranks.stage)
    yield "compute", number
    yield "HBM bandwidth", classes + number
    for (level, direction), shares in built.ranks.alone[number].shares.items():
        for hop, link in enumerate(sorted({link for _, link, _, _ in shares})):
            name = f"{level} {direction}" if not hop else f"{level} {direction}, link {hop + 1} of its route"
            yield name, 2 * classes + link


def _busy(built: Built, timeline: Timeline, resource: int) -> tuple[tuple[float, float], ...]:
    """How much of a resource is in use after every moment at which that changes, in percent."""
    program = built.program
    rows = np.flatnonzero(program.component_resource == resource)
    op = np.repeat(np.arange(program.op_count), np.diff(program.component_start))[rows]
    times = np.concatenate([timeline.start_s[op], timeline.component_end_s[rows]])
    change = np.concatenate([program.component_cap[rows], -program.component_cap[rows]])
    order = np.argsort(times, kind="stable")
    load = np.cumsum(change[order])
    moments = times[order]
    last = np.append(moments[1:] != moments[:-1], True) if len(moments) else np.zeros(0, np.bool_)
    used = np.minimum(load[last] / CAP_ONE, 1.0) * 100.0
    return ((0.0, 0.0), *zip(moments[last].tolist(), used.tolist()))
