"""The simulation in closed form, at many batch sizes at once, where every rank runs one operator after the other.

Claim. Let each stage be one class of equal ranks whose links nobody shares, let all of its operators be on one stream,
and let the first operator of each stage read what the stage before sends last. Then the engine's run is known without
running it:

- The operators of a stage run in program order, each from the end of the one before. For they are on one first-in,
  first-out stream; what an operator waits for on its own stage comes before it on that stream; and what it waits for on
  the stage before is sent in that stage's own order, so that all of it is there once the first operator begins.
- No component is slowed down by another operator's. Compute, memory port and the ways out of a rank belong to one
  stream, which runs one operator at a time. A way into a rank is also used by sends to it, but these have ended before
  its stage begins.
- So an operator takes max(compute, memory, network + α), a stage the sum of that, and a value is alive from the
  operator that makes it to the last one that reads it, by their places on the stream: at one moment exits come before
  entries, so that a value that ends and one that begins are never counted together.

`tests/sim/test_serial.py` compares it with the engine on drawn plans: times agree to rounding, peaks to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.cost.tiers import HBM
from rooflang.place.lower import LiftedOp, PlacedGraph, Value
from rooflang.place.storage import storage, stored
from rooflang.sim.build import Scene
from rooflang.sim.costs import LiftedCosts
from rooflang.sim.csr import BoolArray, FloatArray
from rooflang.sim.emit import PER_WAVE
from rooflang.sim.ranks import Ranks
from rooflang.sim.remote import lane_name
from rooflang.sim.result import Overlap
from rooflang.sim.schedule import BATCH


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Per batch size (b,): the time of a step (infinite where extents do not divide), the peak of the fullest HBM, and
    whether every memory holds its peak."""

    step_s: FloatArray
    peak_bytes: FloatArray
    fits: BoolArray


def serial_steps(placed: PlacedGraph, cost: CostModel, overlap: Overlap) -> Steps | None:
    """What the engine would find for each batch size of `cost`; None where the claim's conditions do not hold."""
    if overlap == "two-batch" or not _in_order(placed):
        return None
    ranks = Scene.of(placed, cost).ranks
    costs = LiftedCosts(cost)
    found = _counted(placed, costs)
    if not _plain(ranks, len(placed.plan.stages), [costs.of(op).levels_s for op, _ in found]):
        return None
    shape = (len(placed.plan.stages), *np.shape(np.atleast_1d(cost.sizes.get(BATCH, 1))))
    local, exposed = np.zeros(shape), np.zeros(shape)
    for op, count in found:
        local[op.stage] += count * costs.of(op).local_s
        exposed[op.stage] += count * costs.of(op).exposed_s
    spans = np.maximum(local, exposed) if overlap == "perfect" else local + exposed
    peaks = _peaks(placed, cost, shape)
    held = {tier: (peaks[tier].max(axis=0), _room_bytes(cost, tier)) for tier in peaks}
    return Steps(
        step_s=spans.max(axis=0),
        peak_bytes=held[HBM][0],
        fits=np.all([peak <= room for peak, room in held.values()], axis=0),
    )


def _room_bytes(cost: CostModel, tier: str) -> int:
    return round(cost.cluster.device.hbm_bytes if tier == HBM else cost.cluster.tier(tier).capacity_bytes)


def _in_order(placed: PlacedGraph) -> bool:
    """Is all of it on one stream a stage, and does each stage begin with what the one before sends last?"""
    if placed.plan.control or any(op.stream for op in placed.ops):
        return False
    first: dict[int, LiftedOp] = {}
    last_sent: dict[int, Value] = {}
    for op in placed.ops:
        first.setdefault(op.stage, op)
        if op.kind == "send":
            last_sent[op.stage + 1] = op.write
    return all(last_sent[stage] in op.reads for stage, op in first.items() if stage in last_sent)


def _plain(ranks: Ranks, stages: int, levels: list[Any]) -> bool:
    """Is a stage one class of ranks, and has every rank links of its own, at their full rate and without detours?"""
    if len(ranks.stage) > stages:
        return False
    for team in (*ranks.alone, *(team for teams in ranks.teams.values() for team in teams)):
        loads = [load for shares in team.shares.values() for load in shares]
        links = [link for _, link, _, _ in loads]
        if team.extra_s or len(set(links)) < len(links) or any(load[2:] != (1, 1.0) for load in loads):
            return False
    names = {lane_name(lane) for team in ranks.alone for lane in team.shares}
    return all(names.issuperset(each) for each in levels)


def _counted(placed: PlacedGraph, costs: LiftedCosts) -> list[tuple[LiftedOp, int]]:
    """One operator of each cost on each stage, and how many of them there are."""
    counts: dict[tuple[int, int], int] = {}
    example: dict[tuple[int, int], LiftedOp] = {}
    for op in placed.ops:
        key = (id(costs.of(op)), op.stage)  # `costs` keeps every record, and so its id
        counts[key] = counts.get(key, 0) + 1
        example.setdefault(key, op)
    return [(example[key], count) for key, count in counts.items()]


def _peaks(placed: PlacedGraph, cost: CostModel, shape: tuple[int, ...]) -> dict[str, FloatArray]:
    """The peak of each memory of a rank of each stage, (stages, b), rounded as the engine's bytes are."""
    waves, sizes = shape[0], dict[object, FloatArray]()

    def size(tensor: Any, spec: Any) -> FloatArray:
        key = (id(tensor), spec)
        if key not in sizes:
            sizes[key] = np.rint(np.broadcast_to(cost.bytes(tensor, spec), shape[1:]))
        return sizes[key]

    peaks = {tier: np.zeros(shape) for tier in dict.fromkeys([HBM, *(leaf.tier for leaf in placed.residents)])}
    for leaf in placed.residents:
        times = waves if leaf.tensor.role in PER_WAVE else 1
        peaks[leaf.tier][leaf.stage] += times * size(leaf.tensor, leaf.spec)
    place, ends = _places(placed)
    change = [np.zeros((count + 1, *shape[1:])) for count in ends]
    for tensor, value, first, last in _lives(placed, cost, place, ends):
        own = size(tensor, value[1])
        change[value[2]][first] += own
        change[value[2]][last + 1] -= own
    for stage, changes in enumerate(change):
        peaks[HBM][stage] += np.cumsum(changes, axis=0).max(axis=0)
    return peaks


def _places(placed: PlacedGraph) -> tuple[list[int], list[int]]:
    """The place of each operator on its stage, and how many a stage has."""
    counts = [0] * len(placed.plan.stages)
    places = []
    for op in placed.ops:
        places.append(counts[op.stage])
        counts[op.stage] += 1
    return places, counts


def _lives(
    placed: PlacedGraph, cost: CostModel, places: list[int], ends: list[int]
) -> Iterator[tuple[Any, Value, int, int]]:
    """(tensor, value, first place, last place) of all that takes room; what is received is there from the start."""
    lies = storage(placed, receive_buffers=cost.assumptions.receive_buffers)
    made: dict[Value, int] = {}
    read: dict[Value, int] = {}
    for op, place in zip(placed.ops, places):
        made[op.write] = place if op.kind != "send" else 0
        for value in op.reads:
            home = lies.get(value)
            if home is not None:
                # Nothing reads on another stage than where the value lies: what is sent is a value of its own.
                read[home] = max(place, read.get(home, 0))
    kept = {lies[value] for value in placed.outputs}
    for value, tensor in stored(placed, lies).items():
        first = made.get(value, 0)
        if value not in made and value not in read:
            continue
        last = ends[value[2]] - 1 if value in kept else max(first, read.get(value, first))
        yield tensor, value, first, last
