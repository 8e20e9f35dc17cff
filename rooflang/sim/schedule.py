"""The order in which the operators of a step are issued: one batch after another, or two micro-batches interleaved."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.errors import PlacementError
from rooflang.ir.tensor import Num
from rooflang.place.lower import LiftedOp, PlacedGraph
from rooflang.sim.book import Book

BATCH = "batch"

#: An operator of a wave and the stream of each rank that it is issued on (None: on none, it takes no time).
Issue = tuple[int, LiftedOp, Hashable]


#: The two streams of a device in two-batch overlap: kernels, and whatever waits for the network.
KERNELS, NETWORK = "kernels", "network"


def stream_work_s(local_s: Num, exposed_s: Num) -> tuple[Num, Num]:
    """For how long an operator of those local and exposed times is on each of the two streams: the kernels', or the
    network's if its network time exceeds its local time, for both."""
    networked = np.asarray(exposed_s) > 0.0
    return np.where(networked, 0.0, local_s), np.where(networked, local_s + exposed_s, 0.0)


def one_batch(placed: PlacedGraph, wave: int = 0) -> Iterator[Issue]:
    """The operators of a step in program order, each on its own stream."""
    return ((wave, op, op.stream) for op in placed.ops)


def two_batches(placed: PlacedGraph, half: Book) -> list[Issue]:
    """Waves 0 and 1, each half of the batch, interleaved stage by stage: one computes while the other is on the net.

    The operators of a wave fall into runs: kernels, then what follows them on the network. Runs of the two waves
    alternate, kernels on one stream of the device and network operators on another; both streams are FIFO.
    """
    issues: list[Issue] = []
    for stage in range(len(placed.plan.stages)):
        runs = _runs([op for op in placed.ops if op.stage == stage], half)
        for run in runs:
            issues += [(wave, op, stream) for wave in (0, 1) for op, stream in run]
    return issues


def _runs(ops: Sequence[LiftedOp], half: Book) -> list[list[tuple[LiftedOp, Hashable]]]:
    runs: list[list[tuple[LiftedOp, Hashable]]] = [[]]
    on_network = False
    for op in ops:
        stream = _stream(op, half)
        if stream is not None:
            if on_network and stream[1] == KERNELS:
                runs.append([])
            on_network = stream[1] == NETWORK
        runs[-1].append((op, stream))
    return runs


def _stream(op: LiftedOp, half: Book) -> tuple[int, str] | None:
    """The network stream for what its local work does not hide, the kernels' stream otherwise."""
    cost = half.cost(op)
    local_s = max(cost.compute_s, cost.memory_s)
    network_s = max(cost.levels_s.values(), default=0.0) + cost.alpha_s
    if not local_s and not network_s:
        return None
    return op.stream, NETWORK if network_s > local_s else KERNELS


def split_batch(cost: CostModel, parts: int) -> CostModel:
    """The cost model of one of `parts` equal micro-batches: the dim `batch` is divided, everything else stays whole.

    Raises `PlacementError` for a graph without a batch and for a batch that does not divide. Whether a micro-batch
    still divides over the mesh shows when its operators are costed.
    """
    batch = cost.sizes.get(BATCH)
    if batch is None:
        raise PlacementError("the graph has no batch to split", where="overlap", hint="use overlap 'none' or 'perfect'")
    if batch % parts:
        raise PlacementError(
            f"a batch of {batch} does not split into {parts} equal micro-batches",
            where="overlap",
            expected=f"a multiple of {parts}",
        )
    return replace(cost, sizes={**cost.sizes, BATCH: batch // parts})
