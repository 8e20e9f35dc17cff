"""What two-batch overlap makes of a costed graph: the time of one half of the batch, by the streams that it runs on.

The halves run on two streams of each rank, both first in, first out: kernels on one, on the other operators whose
network time exceeds their local time (`rooflang.sim.schedule`). An operator holds its stream for at least as long as it
takes alone, so that a stage lasts at least twice as long as a stream has work of one half. With K, the sum over the
kernels' stream, in the place of C, and W, the sum over the other, in the place of N, an extraction that minimises
max(K, W) bounds the simulation from below, and finds plans near that bound.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rooflang.cost.model import CostModel
from rooflang.extractors.costed import CostedGraph, CostedKind
from rooflang.sim.schedule import stream_work_s


def by_stream(half: CostedGraph, whole: CostModel) -> CostedGraph:
    """A graph that is costed for halves of the batch sizes of the cost model `whole`, with K as its local and W as its
    exposed time. Leaves are there for all of the batch."""
    batches = np.atleast_1d(whole.sizes["batch"])
    kinds = {name: _by_stream(kind, whole, len(batches)) for name, kind in half.kinds.items()}
    return replace(half, kinds=kinds, batches=tuple(int(batch) for batch in batches))


def _by_stream(kind: CostedKind, whole: CostModel, batches: int) -> CostedKind:
    kernels_s, network_s = stream_work_s(kind.local_s, kind.exposed_s)
    return replace(
        kind,
        local_s=kernels_s,
        exposed_s=network_s,
        leaf_bytes={
            (leaf, spec): np.broadcast_to(np.asarray(whole.bytes(kind.leaf[leaf], spec), np.float64), (batches,))
            for leaf, spec in kind.leaf_bytes
        },
    )
